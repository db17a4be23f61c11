//! What a value comes to, and which steps models take out.

use syn::{Block, Expr, Stmt, UnOp};

/// What a value comes to, in its blocks and branches, but for what stands there instead of a step that models take out.
pub(super) fn leaves<'e>(value: &'e Expr, each: &mut impl FnMut(&'e Expr)) {
    match value {
        Expr::Block(of) => last_of(&of.block, each),
        Expr::Unsafe(of) => last_of(&of.block, each),
        Expr::Paren(of) => leaves(&of.expr, each),
        Expr::If(of) => {
            if !is_control(&of.cond) {
                last_of(&of.then_branch, each);
            }
            if let Some((_, otherwise)) = of.else_branch.as_ref().filter(|_| !is_site(&of.cond)) {
                leaves(otherwise, each);
            }
        }
        Expr::Match(of) => of.arms.iter().for_each(|arm| leaves(&arm.body, each)),
        leaf => each(leaf),
    }
}

/// The same of a block.
pub(super) fn last_of<'e>(block: &'e Block, each: &mut impl FnMut(&'e Expr)) {
    if let Some(Stmt::Expr(value, None)) = block.stmts.last() {
        leaves(value, each);
    }
}

/// Whether a condition is the question whether loom models take out a step by name: `intact(Site::…)`. That each of these
/// is noticed, the controls of the models show.
pub(super) fn is_site(condition: &Expr) -> bool {
    let Expr::Call(call) = condition else { return false };
    let Expr::Path(path) = &*call.func else { return false };
    path.path.segments.last().is_some_and(|it| it.ident == "intact")
}

/// Whether a condition holds only where a site is taken out. What stands behind it is wrong on purpose, and so is what
/// could be planted there.
pub(super) fn is_control(condition: &Expr) -> bool {
    matches!(condition, Expr::Unary(of) if matches!(of.op, UnOp::Not(_)) && is_site(&of.expr))
}
