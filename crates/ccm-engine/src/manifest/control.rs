//! Finds `control` expressions that fail for any data.

use std::collections::HashSet;

use ccm_model::Finding;
use ccm_template::Resolver;
use ccm_yaml::Source;

use crate::resource::{AnyResource, PropertyError, templates_of};

/// Finds expressions that do not compile, or that can be neither true nor
/// false. An expression that several resources get from `defaults` is reported
/// once.
pub(super) fn check(
    source: &Source,
    resources: &[Box<dyn AnyResource>],
    templates: &Resolver,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut seen = HashSet::new();
    for resource in resources {
        let controls = resource.block().map_or(&[][..], |block| &block.control);
        let controls = controls.iter().chain(&resource.common().control);
        let expressions = controls.flat_map(|control| {
            [("control.if", &control.r#if), ("control.unless", &control.unless)]
        });
        for (property, expression) in expressions {
            let Some(expression) = expression else { continue };
            if seen.contains(&expression.span.start) {
                continue;
            }
            let templates = templates_of(&**resource, templates);
            let Err(error) = templates.check_condition(&expression.value) else { continue };
            if seen.insert(expression.span.start) {
                let failure = PropertyError { property, span: Some(expression.span), error };
                findings.push(failure.finding(Some(source)).of(resource.display()));
            }
        }
    }
    findings
}
