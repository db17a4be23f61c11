//! Statements that are dropped: calls and assignments whose value nobody takes.

use std::ops::Range;

use quote::ToTokens;
use syn::spanned::Spanned;
use syn::{BinOp, Block, Expr, Local, Pat, Stmt};

use super::Operator::{Drop, Fence};
use super::edit::range;
use super::orderings::is_fence;
use super::values::{is_control, last_of, leaves};
use super::walk::Walk;

/// What a text is that is not there.
const NOTHING: &str = "nothing";

/// Calls whose absence changes nothing but time, or nothing that is not a test's own.
const HARMLESS: [&str; 3] = ["spin_loop", "yield_now", "done"];

impl Walk<'_> {
    /// A statement of a block.
    pub(super) fn statement(&mut self, statement: &Stmt) {
        match statement {
            Stmt::Expr(expr, Some(_)) => self.dropped(expr, range(statement.span())),
            Stmt::Local(local) => self.local(local),
            _ => {}
        }
    }

    /// What a block comes to, which is nothing.
    pub(super) fn unit_block(&mut self, block: &Block) {
        last_of(block, &mut |leaf| self.dropped(leaf, range(leaf.span())));
    }

    /// What stands in a block without a semicolon, before its end, comes to nothing.
    pub(super) fn before_the_end(&mut self, block: &Block) {
        for statement in block.stmts.iter().rev().skip(1) {
            if let Stmt::Expr(expr, None) = statement {
                leaves(expr, &mut |leaf| self.dropped(leaf, range(leaf.span())));
            }
        }
    }

    /// Parts of an expression that come to nothing wherever it stands.
    pub(super) fn unit_parts(&mut self, expr: &Expr) {
        match expr {
            Expr::ForLoop(of) => self.unit_block(&of.body),
            Expr::While(of) => self.unit_block(&of.body),
            Expr::Loop(of) => self.unit_block(&of.body),
            Expr::If(of) if of.else_branch.is_none() && !is_control(&of.cond) => {
                self.unit_block(&of.then_branch);
            }
            _ => {}
        }
    }

    fn dropped(&mut self, expr: &Expr, around: Range<usize>) {
        let what = match expr {
            Expr::Call(_) | Expr::MethodCall(_) | Expr::Try(_) | Expr::Assign(_) => expr,
            Expr::Binary(of) if is_assignment(&of.op) => expr,
            _ => return,
        };
        let name = called(what);
        if name.as_deref().is_some_and(|name| HARMLESS.contains(&name)) {
            return;
        }
        let operator = if name.as_deref().is_some_and(is_fence) { Fence } else { Drop };
        if operator == Fence && !self.worlds.loom {
            return;
        }
        self.plant(around, operator, NOTHING, ("if !{on} { ", " }"));
    }

    /// `let _ = CALL;` is a statement that drops a value; `let _guard = CALL;` holds something for a while.
    fn local(&mut self, local: &Local) {
        let Some(init) = local.init.as_ref().filter(|init| init.diverge.is_none()) else { return };
        let is_call = matches!(&*init.expr, Expr::Call(_) | Expr::MethodCall(_) | Expr::Try(_));
        match &local.pat {
            Pat::Wild(_) if is_call => self.dropped(&init.expr, range(local.span())),
            Pat::Ident(of) if is_call && of.ident.to_string().starts_with('_') => {
                let text = ("if {on} { None } else { Some(", ") }");
                self.plant(range(init.expr.span()), Drop, NOTHING, text);
            }
            _ => {}
        }
    }
}

/// Of the operators that end with `=`, comparisons assign nothing.
fn is_assignment(op: &BinOp) -> bool {
    let text = op.to_token_stream().to_string();
    text.ends_with('=') && !matches!(op, BinOp::Eq(_) | BinOp::Ne(_) | BinOp::Le(_) | BinOp::Ge(_))
}

/// The last name of what is called.
fn called(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Call(of) => match &*of.func {
            Expr::Path(path) => path.path.segments.last().map(|it| it.ident.to_string()),
            _ => None,
        },
        Expr::MethodCall(of) => Some(of.method.to_string()),
        Expr::Try(of) => called(&of.expr),
        _ => None,
    }
}
