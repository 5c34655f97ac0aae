//! Renders a graph as JSON.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::layout::{Frame, Layout};
use super::{EdgeKind, Graph};
use crate::decision::Decision;

/// A graph with its layout, in pixels.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct GraphDocument {
    /// The name of this format
    #[schemars(extend("const" = GraphDocument::PROTOCOL))]
    pub protocol: Cow<'static, str>,
    /// The manifest
    pub manifest: String,
    /// Width of the picture
    pub width: i64,
    /// Height of the picture
    pub height: i64,
    /// The resources of all manifests, in run order
    pub nodes: Vec<GraphNode>,
    /// From the earlier resource to the one that refers to it
    pub edges: Vec<GraphEdge>,
    /// The child manifests
    pub clusters: Vec<GraphCluster>,
}

/// One resource.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct GraphNode {
    /// Number of the node, from 0
    pub id: usize,
    /// Type of the resource
    #[serde(rename = "type")]
    pub kind: String,
    /// Name of the resource
    pub name: String,
    /// Alias of the resource
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alias: Option<String>,
    /// The child manifest that contains it; absent for the first manifest
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<usize>,
    /// The line that declares it
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// Note, such as a child manifest that cannot be read
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// What a run would do, with `--plan`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<Decision>,
    /// Length of the longest chain of references to it
    pub column: usize,
    /// Row within its column
    pub row: usize,
    /// Left edge
    pub x: i64,
    /// Top edge
    pub y: i64,
    /// Width
    pub width: i64,
    /// Height
    pub height: i64,
}

/// A reference.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct GraphEdge {
    /// The earlier node
    pub from: usize,
    /// The node that refers to it
    pub to: usize,
    /// Kind of the reference
    pub kind: EdgeKind,
}

/// A child manifest.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct GraphCluster {
    /// Number of the cluster, from 0
    pub id: usize,
    /// The manifest
    pub manifest: String,
    /// The node that applies it
    pub node: usize,
    /// Left edge
    pub x: i64,
    /// Top edge
    pub y: i64,
    /// Width
    pub width: i64,
    /// Height
    pub height: i64,
}

impl GraphDocument {
    /// The name of this format.
    pub const PROTOCOL: &'static str = "io.choria.ccm.v1.graph";

    /// A graph and where everything of it is.
    pub fn new(graph: &Graph, layout: &Layout) -> Self {
        let nodes = graph.nodes.iter().zip(&layout.nodes).enumerate();
        let nodes = nodes.map(|(id, (node, frame))| {
            let Frame { x, y, width, height } = *frame;
            GraphNode {
                id,
                kind: node.kind.clone(),
                name: node.name.clone(),
                alias: node.alias.clone(),
                cluster: node.cluster,
                line: node.line,
                note: node.note.clone(),
                decision: node.decision.clone(),
                column: layout.columns[id],
                row: layout.rows[id],
                x,
                y,
                width,
                height,
            }
        });
        let clusters = graph.clusters.iter().zip(&layout.clusters).enumerate();
        let clusters = clusters.map(|(id, (cluster, frame))| {
            let Frame { x, y, width, height } = *frame;
            let manifest = cluster.manifest.clone();
            GraphCluster { id, manifest, node: cluster.node, x, y, width, height }
        });
        let edges = graph.edges.iter();
        let edges = edges.map(|edge| GraphEdge { from: edge.from, to: edge.to, kind: edge.kind });
        Self {
            protocol: Self::PROTOCOL.into(),
            manifest: graph.manifest.clone(),
            width: layout.width,
            height: layout.height,
            nodes: nodes.collect(),
            edges: edges.collect(),
            clusters: clusters.collect(),
        }
    }
}
