//! Renders a graph in the DOT language of Graphviz.

use std::fmt::Write as _;

use super::labels::{shorten, visible};
use super::{EdgeKind, Graph, Node};
use crate::decision::Decision;

/// Labels are cut here; tooltips hold everything.
const MAX_LABEL: usize = 60;

/// Writes the graph; `dot -Tsvg` draws it.
pub(super) fn render(graph: &Graph) -> String {
    let mut out = String::new();
    let _ = writeln!(
        out,
        "digraph {} {{\n  rankdir=LR;\n  compound=true;\n  node [shape=box];",
        quote(&visible(&graph.manifest)),
    );
    let applied = graph.applied();
    let mut writing = Writing { graph, applied: &applied, out: &mut out };
    writing.members(None, 1);
    for edge in &graph.edges {
        let (from, to) = (edge.from, edge.to);
        match edge.kind {
            EdgeKind::Require => {
                let _ = writeln!(out, "  n{from} -> n{to};");
            }
            EdgeKind::Subscribe => {
                let _ = writeln!(out, "  n{from} -> n{to} [style=dashed];");
            }
            // A line to a cluster leads to one of its nodes and is cut.
            EdgeKind::Apply => {
                let cluster = applied[from].unwrap_or_default();
                let _ = writeln!(
                    out,
                    "  n{from} -> n{to} [lhead=cluster_{cluster}, color=\"black:invis:black\", \
                     arrowhead=none];",
                );
            }
        }
    }
    out.push_str("}\n");
    out
}

struct Writing<'a> {
    graph: &'a Graph,
    applied: &'a [Option<usize>],
    out: &'a mut String,
}

impl Writing<'_> {
    /// The nodes of a manifest. Children nest ten deep at most.
    fn members(&mut self, cluster: Option<usize>, depth: usize) {
        let indent = "  ".repeat(depth);
        let graph = self.graph;
        for at in graph.members(cluster) {
            let node = &graph.nodes[at];
            let (label, tooltip) = (label(node), visible(&node.display()).into_owned());
            let _ = write!(
                self.out,
                "{indent}n{at} [label={}, tooltip={}",
                quote(&label),
                quote(&tooltip),
            );
            if let Some(decision) = &node.decision {
                let color = super::mermaid::color(decision.outcome);
                let _ = write!(self.out, ", color={}", quote(color));
            }
            self.out.push_str("];\n");
            if let Some(child) = self.applied[at] {
                let title = visible(&graph.clusters[child].manifest);
                let title = quote(&shorten(&title, MAX_LABEL));
                let _ = writeln!(self.out, "{indent}subgraph cluster_{child} {{");
                let _ = writeln!(self.out, "{indent}  label={title};");
                self.members(Some(child), depth + 1);
                let _ = writeln!(self.out, "{indent}}}");
            }
        }
    }
}

/// What is written in a node, with the outcome as a sign and a word. The name
/// comes first: Mermaid reads a leading `-` as a list.
pub(super) fn label(node: &Node) -> String {
    let name = visible(&node.display()).into_owned();
    let mut label = shorten(&name, MAX_LABEL).into_owned();
    if let Some(Decision { outcome, .. }) = &node.decision {
        label += &format!(" ({} {})", outcome.glyph(), outcome.word());
    }
    if let Some(note) = &node.note {
        label += &format!(": {}", shorten(&visible(note), MAX_LABEL));
    }
    label
}

/// A quoted string: a backslash would begin an escape of its own.
fn quote(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}
