//! The graph of a manifest: its resources in run order, what they refer to, and
//! the manifests that they apply.
//!
//! [`graph`] collects a [`Graph`] and reads child
//! manifests for it. Everything else here is without I/O: [`Graph::layout`] is
//! the picture as numbers, and the renderers turn both into text.

mod collect;
mod coordinates;
mod dot;
mod json;
mod labels;
mod layered;
mod layout;
mod mermaid;
mod ordering;
mod svg;
#[cfg(test)]
mod tests;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use collect::graph;
pub use json::{GraphCluster, GraphDocument, GraphEdge, GraphNode};
pub use layout::{Frame, Layout};

use crate::decision::Decision;

/// Resources, what they refer to, and the manifests they stand in. Only the
/// engine makes one: indices in it are always those of nodes and clusters.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Graph {
    /// Display name of the manifest.
    pub manifest: String,
    /// The resources of all manifests, in run order. An `apply` resource comes
    /// before the resources of its child manifest.
    pub nodes: Vec<Node>,
    /// From what comes first to what refers to it.
    pub edges: Vec<Edge>,
    /// The child manifests, parents before their children.
    pub clusters: Vec<Cluster>,
}

/// One resource.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Node {
    /// Its type.
    pub kind: String,
    /// Its name, secrets redacted.
    pub name: String,
    /// Its alias, secrets redacted.
    pub alias: Option<String>,
    /// The child manifest that it stands in; `None` for the first manifest.
    pub cluster: Option<usize>,
    /// The line that declares it, from 1.
    pub line: Option<usize>,
    /// What is worth knowing: a child manifest that cannot be read, a reference
    /// to a resource of another run.
    pub note: Option<String>,
    /// The outcome that a run would have.
    pub decision: Option<Decision>,
}

impl Node {
    /// `type#name`.
    pub fn display(&self) -> String {
        format!("{}#{}", self.kind, self.name)
    }
}

/// A reference from one resource to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Edge {
    /// The node that comes first.
    pub from: usize,
    /// The node that refers to it.
    pub to: usize,
    /// How it refers to it.
    pub kind: EdgeKind,
}

/// How one resource refers to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum EdgeKind {
    /// `require`: must have succeeded before
    Require,
    /// `subscribe`: reacts to its changes
    Subscribe,
    /// Applies the child manifest
    Apply,
}

/// A child manifest.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Cluster {
    /// Display name of the manifest.
    pub manifest: String,
    /// The `apply` resource that applies it.
    pub node: usize,
}

/// How a graph is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GraphFormat {
    /// A picture that needs nothing else.
    Svg,
    /// The language of Graphviz.
    Dot,
    /// The language of Mermaid, for Markdown.
    Mermaid,
    /// Nodes with positions, edges and clusters.
    Json,
}

impl Graph {
    /// The graph as text.
    pub fn render(&self, format: GraphFormat) -> String {
        match format {
            GraphFormat::Svg => svg::render(self, &self.layout()),
            GraphFormat::Dot => dot::render(self),
            GraphFormat::Mermaid => mermaid::render(self),
            GraphFormat::Json => {
                let document = GraphDocument::new(self, &self.layout());
                serde_json::to_string_pretty(&document).unwrap_or_default() + "\n"
            }
        }
    }

    /// The nodes of a cluster, or of the first manifest.
    fn members(&self, cluster: Option<usize>) -> impl Iterator<Item = usize> {
        let is_member = move |&at: &usize| self.nodes[at].cluster == cluster;
        (0..self.nodes.len()).filter(is_member)
    }

    /// The cluster that each node applies, if it applies one.
    fn applied(&self) -> Vec<Option<usize>> {
        let mut applied = vec![None; self.nodes.len()];
        for (index, cluster) in self.clusters.iter().enumerate() {
            applied[cluster.node] = Some(index);
        }
        applied
    }
}
