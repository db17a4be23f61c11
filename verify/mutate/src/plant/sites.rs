//! The steps that loom models take out by name: each `Site` is a mutant, so that it can be seen whether the
//! models notice it with their controls switched off.

use std::collections::BTreeMap;

use quote::ToTokens;
use syn::visit::{self, Visit};
use syn::{Expr, FnArg, ItemEnum, Pat, Signature, UnOp};

use super::edit::range;
use super::{Operator, Planting, Spot};
use crate::sources::Source;

/// The type that names them, and the function that says whether one does its work.
const TYPE: &str = "Site";
const ANSWER: &str = "intact";

/// The mutant of each site, of the device and of the engine.
#[derive(Debug, Default)]
pub(super) struct Sites(BTreeMap<bool, Vec<(String, u32)>>);

/// Finds the enums.
pub(super) fn find(sources: &[Source], planting: &mut Planting) -> Sites {
    let mut sites = Sites::default();
    for source in sources {
        let mut finder = Finder { source, sites: &mut sites, planting };
        finder.visit_file(&source.syntax);
    }
    sites
}

struct Finder<'a> {
    source: &'a Source,
    sites: &'a mut Sites,
    planting: &'a mut Planting,
}

impl Visit<'_> for Finder<'_> {
    fn visit_item_enum(&mut self, item: &ItemEnum) {
        if item.ident == TYPE {
            let of_crate = self.sites.0.entry(self.source.is_of_core()).or_default();
            for variant in &item.variants {
                let spot = Spot {
                    around: range(variant.ident.span()),
                    function: TYPE,
                    operator: Operator::Site,
                    mutated: "nothing",
                };
                let mutant = self.planting.add(self.source, spot);
                of_crate.push((variant.ident.to_string(), mutant));
            }
        }
        visit::visit_item_enum(self, item);
    }
}

impl Sites {
    /// What the function that is asked has to ask first; nothing for any other function.
    pub(super) fn question(&self, source: &Source, signature: &Signature) -> Option<String> {
        let sites = self.0.get(&source.is_of_core())?;
        let [FnArg::Typed(input)] = signature.inputs.iter().collect::<Vec<_>>()[..] else {
            return None;
        };
        let Pat::Ident(name) = &*input.pat else { return None };
        if signature.ident != ANSWER || input.ty.to_token_stream().to_string() != TYPE {
            return None;
        }
        let on =
            |(site, mutant): &(String, u32)| format!("{TYPE}::{site} => {},", source.on(*mutant));
        let arms: String = sites.iter().map(on).collect();
        Some(format!(" if match {} {{ {arms} }} {{ return false; }}", name.ident))
    }
}

/// Whether a condition is the question for a site, which is a mutant already.
pub(super) fn is_site(condition: &Expr) -> bool {
    let Expr::Call(call) = condition else { return false };
    let Expr::Path(path) = &*call.func else { return false };
    path.path.segments.last().is_some_and(|it| it.ident == ANSWER)
}

/// Whether a condition holds only where a site is taken out. What stands behind it is wrong on purpose, and so is what
/// could be planted there.
pub(super) fn is_control(condition: &Expr) -> bool {
    matches!(condition, Expr::Unary(of) if matches!(of.op, UnOp::Not(_)) && is_site(&of.expr))
}
