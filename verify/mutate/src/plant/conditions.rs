//! Conditions that are flipped, that never hold, or that lack a part; comparisons shifted by one; sums.

use syn::spanned::Spanned;
use syn::{BinOp, Block, Expr, ExprBinary, ExprMethodCall, Lit, UnOp};

use super::Operator::{Flip, Never, Part, Shift, Sum};
use super::edit::range;
use super::values::{is_control, is_site, last_of, leaves};
use super::walk::Walk;

/// Methods whose receiver is a condition.
const ON_BOOL: [&str; 2] = ["then", "then_some"];
/// Methods whose closure is a condition.
const OF_CLOSURE: [&str; 14] = [
    "all",
    "any",
    "filter",
    "find",
    "is_err_and",
    "is_none_or",
    "is_ok_and",
    "is_some_and",
    "partition",
    "position",
    "retain",
    "skip_while",
    "take_if",
    "take_while",
];

impl Walk<'_> {
    /// What stands in an expression as a condition.
    pub(super) fn condition_of(&mut self, expr: &Expr) {
        match expr {
            Expr::If(of) => self.condition(&of.cond, true),
            Expr::While(of) => self.condition(&of.cond, false),
            Expr::Binary(of) => self.parts(of),
            Expr::Unary(of) if matches!(of.op, UnOp::Not(_)) => self.negated(&of.expr),
            Expr::MethodCall(of) => self.methods(of),
            Expr::Match(of) => {
                let guards = of.arms.iter().filter_map(|arm| arm.guard.as_ref());
                guards.for_each(|(_, guard)| self.condition(guard, true));
            }
            _ => {}
        }
    }

    fn methods(&mut self, call: &ExprMethodCall) {
        let name = call.method.to_string();
        if ON_BOOL.contains(&name.as_str()) {
            self.condition(&call.receiver, false);
        }
        if OF_CLOSURE.contains(&name.as_str()) {
            for argument in &call.args {
                let Expr::Closure(closure) = argument else { continue };
                self.bool_expr(&closure.body);
            }
        }
    }

    /// The condition of something; `skips` if what depends on it can be left out by it.
    fn condition(&mut self, condition: &Expr, skips: bool) {
        match condition {
            Expr::Paren(of) => self.condition(&of.expr, skips),
            _ if has_let(condition) => self.never_matches(condition),
            // Its parts are planted one by one.
            Expr::Binary(of) if is_logic(&of.op) => {
                if skips {
                    self.never(condition);
                }
            }
            _ => {
                if skips {
                    self.never(condition);
                }
                self.flip(condition);
            }
        }
    }

    fn never(&mut self, condition: &Expr) {
        if !is_site(condition) && !is_control(condition) && !is_cfg(condition) {
            self.plant(range(condition.span()), Never, "false", ("((", ") & !{on})"));
        }
    }

    /// A pattern is in the condition, which goes on behind it.
    fn never_matches(&mut self, condition: &Expr) {
        self.plant(range(condition.span()), Never, "false", ("", " && !{on}"));
    }

    /// The opposite of a condition, unless something else makes it already.
    pub(super) fn flip(&mut self, condition: &Expr) {
        match condition {
            Expr::Paren(of) => self.flip(&of.expr),
            Expr::Unary(of) if matches!(of.op, UnOp::Not(_)) => self.flip(&of.expr),
            Expr::Let(_) => {}
            Expr::Binary(of) if is_logic(&of.op) => {}
            _ if is_site(condition) || is_cfg(condition) => {}
            _ => {
                let around = range(condition.span());
                let opposite = format!("!({})", &self.source.text[around.clone()]);
                self.plant(around, Flip, &opposite, ("((", ") ^ {on})"));
            }
        }
    }

    /// What is negated is a condition, or a number.
    fn negated(&mut self, inner: &Expr) {
        if !is_number(inner) {
            self.flip(inner);
        }
    }

    /// Both sides of `&&` and `||`.
    fn parts(&mut self, of: &ExprBinary) {
        let (without, text) = match of.op {
            BinOp::And(_) => ("true", ") | {on})"),
            BinOp::Or(_) => ("false", ") & !{on})"),
            _ => return,
        };
        for side in [&*of.left, &*of.right] {
            let chained = matches!(side, Expr::Binary(of) if is_logic(&of.op));
            let is_known = is_cfg(side) || is_site(side) || is_control(side);
            if is_known || matches!(side, Expr::Let(_)) || has_let(side) {
                continue;
            }
            if !chained {
                self.flip(side);
            }
            // Of `a && b && c` the left side is `a && b`, whose own sides come by themselves.
            if !(chained && same_logic(side, &of.op)) {
                self.plant(range(side.span()), Part, without, ("((", text));
            }
        }
    }

    /// What a block comes to, which is a `bool`.
    pub(super) fn bool_block(&mut self, block: &Block) {
        last_of(block, &mut |leaf| self.bool_leaf(leaf));
    }

    /// A value that is a `bool`.
    pub(super) fn bool_expr(&mut self, value: &Expr) {
        leaves(value, &mut |leaf| self.bool_leaf(leaf));
    }

    fn bool_leaf(&mut self, leaf: &Expr) {
        if !matches!(leaf, Expr::Return(_) | Expr::Macro(_) | Expr::Loop(_)) {
            self.flip(leaf);
        }
    }

    /// Comparisons and sums.
    pub(super) fn comparison(&mut self, expr: &Expr) {
        let Expr::Binary(of) = expr else { return };
        let shifted = match of.op {
            BinOp::Lt(_) => "<=",
            BinOp::Le(_) => "<",
            BinOp::Gt(_) => ">=",
            BinOp::Ge(_) => ">",
            BinOp::Eq(_) | BinOp::Ne(_) => return self.flip(expr),
            BinOp::Add(_) => return self.sum(of, "-"),
            BinOp::Sub(_) => return self.sum(of, "+"),
            _ => return,
        };
        self.other_operator(of, Shift, shifted);
    }

    fn sum(&mut self, of: &ExprBinary, opposite: &str) {
        self.other_operator(of, Sum, opposite);
        if is_one(&of.right) {
            self.instead(&of.right, Sum, quote::quote!(0));
        }
    }

    fn other_operator(&mut self, of: &ExprBinary, operator: super::Operator, other: &str) {
        let Ok(other) = syn::parse_str::<BinOp>(other) else { return };
        let (left, right) = (&of.left, &of.right);
        self.instead(of, operator, quote::quote!(#left #other #right));
    }
}

const fn is_logic(of: &BinOp) -> bool {
    matches!(of, BinOp::And(_) | BinOp::Or(_))
}

/// Whether this is a number by the look of it: a constant, or made of bits.
fn is_number(of: &Expr) -> bool {
    match of {
        Expr::Lit(of) => matches!(of.lit, Lit::Int(_)),
        Expr::Paren(of) => is_number(&of.expr),
        Expr::Binary(of) => {
            matches!(of.op, BinOp::BitOr(_) | BinOp::BitAnd(_) | BinOp::Shl(_) | BinOp::Shr(_))
        }
        Expr::Path(path) => path.path.segments.last().is_some_and(|it| {
            it.ident.to_string().chars().all(|c| c.is_uppercase() || c == '_' || c.is_numeric())
        }),
        _ => false,
    }
}

fn same_logic(side: &Expr, op: &BinOp) -> bool {
    let Expr::Binary(of) = side else { return false };
    std::mem::discriminant(&of.op) == std::mem::discriminant(op)
}

/// Whether there is a `let` among the parts.
fn has_let(condition: &Expr) -> bool {
    match condition {
        Expr::Let(_) => true,
        Expr::Binary(of) if is_logic(&of.op) => has_let(&of.left) || has_let(&of.right),
        _ => false,
    }
}

fn is_cfg(condition: &Expr) -> bool {
    matches!(condition, Expr::Macro(of) if of.mac.path.is_ident("cfg"))
}

pub(super) fn is_one(expr: &Expr) -> bool {
    matches!(expr, Expr::Lit(of) if matches!(&of.lit, Lit::Int(number) if number.base10_digits() == "1"))
}
