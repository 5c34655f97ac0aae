//! Renders a graph in the language of Mermaid, for Markdown viewers.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::labels::{shorten, visible};
use super::{EdgeKind, Graph, dot};
use ccm_model::Outcome;

/// Writes the graph as a flowchart.
pub(super) fn render(graph: &Graph) -> String {
    let mut out = "flowchart LR\n".to_owned();
    let applied = graph.applied();
    members(graph, &applied, None, 1, &mut out);
    for edge in &graph.edges {
        let (from, to) = (edge.from, edge.to);
        let _ = match (edge.kind, applied[from]) {
            (EdgeKind::Require, _) => writeln!(out, "  n{from} --> n{to}"),
            (EdgeKind::Subscribe, _) => writeln!(out, "  n{from} -.-> n{to}"),
            // Mermaid has no double lines; a thick one is the closest.
            (EdgeKind::Apply, cluster) => {
                writeln!(out, "  n{from} === c{}", cluster.unwrap_or_default())
            }
        };
    }
    let decisions = graph.nodes.iter().filter_map(|node| node.decision.as_ref());
    let words: BTreeSet<&str> = decisions.map(|decision| decision.outcome.word()).collect();
    for outcome in Outcome::ALL.into_iter().filter(|found| words.contains(found.word())) {
        let (word, color) = (outcome.word(), color(outcome));
        let _ = writeln!(out, "  classDef {word} stroke:{color},stroke-width:2px");
    }
    out
}

fn members(
    graph: &Graph,
    applied: &[Option<usize>],
    cluster: Option<usize>,
    depth: usize,
    out: &mut String,
) {
    let indent = "  ".repeat(depth);
    for at in graph.members(cluster) {
        let node = &graph.nodes[at];
        let _ = write!(out, "{indent}n{at}[\"{}\"]", escape(&dot::label(node)));
        if let Some(decision) = &node.decision {
            let _ = write!(out, ":::{}", decision.outcome.word());
        }
        out.push('\n');
        if let Some(child) = applied[at] {
            let title = visible(&graph.clusters[child].manifest);
            let title = escape(&shorten(&title, 60));
            let _ = writeln!(out, "{indent}subgraph c{child}[\"{title}\"]");
            members(graph, applied, Some(child), depth + 1, out);
            let _ = writeln!(out, "{indent}end");
        }
    }
}

/// A colour that can be seen on light and on dark backgrounds.
pub(super) fn color(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Create => "#2da44e",
        Outcome::Change | Outcome::Run => "#bf8700",
        Outcome::Remove | Outcome::Failed => "#e5534b",
        Outcome::Refresh => "#3f8cff",
        Outcome::Provisional => "#a371f7",
        Outcome::Skipped | Outcome::Stable => "#848d97",
    }
}

/// Everything but harmless characters as a numeric code, as Mermaid reads
/// Markdown, HTML and words of its own in labels.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if c.is_alphanumeric() || " -_./:,+=@~✓✗○↻…".contains(c) {
            escaped.push(c);
        } else {
            let _ = write!(escaped, "#{};", c as u32);
        }
    }
    escaped
}
