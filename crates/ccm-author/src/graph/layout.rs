//! The layout of a graph: coordinates of nodes, child manifests and lines.

use super::labels::{cells, visible};
use super::layered::{Item, Lane, Link, lay_out};
use super::{EdgeKind, Graph, Node};

/// How high a node is, and where lines meet it.
const NODE_HEIGHT: i64 = 44;
/// What a note adds to it.
const NOTE_HEIGHT: i64 = 15;
const NODE_PORT: i64 = 18;
/// Lines of subscriptions meet it this much lower, so that both kinds are seen
/// where they run side by side.
const SUBSCRIBE_PORT: i64 = 9;
/// How wide nodes are at least and at most.
const NODE_WIDTH: (i64, i64) = (132, 320);
/// The columns of text that the widest node has room for.
pub(super) const MAX_CELLS: usize = 40;
/// One column of text, in hundredths, in the fonts of names and of the line
/// above them.
const NAME_CELL: i64 = 740;
const KIND_CELL: i64 = 640;
/// What stands left and right of the text in a node.
const NODE_PADDING: i64 = 24;
/// Between an `apply` resource and the frame of its child manifest.
const APPLY_GAP: i64 = 36;
/// Between a frame and what is in it; its title is above that.
const FRAME_PADDING: i64 = 16;
const FRAME_TITLE: i64 = 26;

/// A rectangle in pixels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    /// Left edge.
    pub x: i64,
    /// Upper edge.
    pub y: i64,
    /// Width.
    pub width: i64,
    /// Height.
    pub height: i64,
}

/// Where everything of a graph is. The same graph always has the same layout.
#[derive(Clone, Debug, Default)]
pub struct Layout {
    /// The node at the same index in the graph.
    pub nodes: Vec<Frame>,
    /// The column of each node within its manifest, from 0: the longest path of
    /// references that leads to it.
    pub columns: Vec<usize>,
    /// The row of each node within its column, from 0.
    pub rows: Vec<usize>,
    /// The child manifest at the same index in the graph.
    pub clusters: Vec<Frame>,
    /// The width of the whole.
    pub width: i64,
    /// The height of the whole.
    pub height: i64,
    pub(super) lines: Vec<Line>,
}

/// A line from left to right: horizontal in lanes, curved in between.
#[derive(Clone, Debug)]
pub(super) struct Line {
    pub(super) kind: EdgeKind,
    pub(super) start: (i64, i64),
    /// Straight on to here before the first curve.
    pub(super) leave: i64,
    pub(super) lanes: Vec<Lane>,
    /// Where it ends; a trunk ends with its last lane.
    pub(super) end: Option<(i64, i64)>,
    /// The edges that it is drawn for.
    pub(super) edge: Option<usize>,
}

impl Graph {
    /// Lays the graph out, left to right. Takes time in proportion to the number
    /// of resources and references, but for a logarithm.
    pub fn layout(&self) -> Layout {
        let mut drawing = Drawing::new(self);
        let mut manifests: Vec<Option<usize>> = vec![None];
        manifests.extend((0..self.clusters.len()).map(Some));
        // Children before their parents: parents make room for them.
        let laid: Vec<Manifest> =
            manifests.iter().rev().map(|&cluster| drawing.lay_out(cluster)).collect();
        for manifest in laid.iter().rev() {
            drawing.place(manifest);
        }
        for manifest in laid.iter().rev() {
            drawing.draw(manifest);
        }
        drawing.layout
    }
}

/// One manifest, laid out by itself.
struct Manifest {
    cluster: Option<usize>,
    members: Vec<usize>,
    links: Vec<(usize, Link)>,
    laid: super::layered::Layered,
}

struct Drawing<'g> {
    graph: &'g Graph,
    layout: Layout,
    applied: Vec<Option<usize>>,
    members: Vec<Vec<usize>>,
    /// The edges whose ends meet in a manifest, as items of it.
    links: Vec<Vec<(usize, Link)>>,
}

impl<'g> Drawing<'g> {
    fn new(graph: &'g Graph) -> Self {
        let count = graph.nodes.len();
        let slot = |cluster: Option<usize>| cluster.map_or(0, |cluster| cluster + 1);
        let mut members = vec![Vec::new(); graph.clusters.len() + 1];
        let mut item = vec![0; count];
        for (at, node) in graph.nodes.iter().enumerate() {
            let members: &mut Vec<usize> = &mut members[slot(node.cluster)];
            item[at] = members.len();
            members.push(at);
        }
        let mut links = vec![Vec::new(); graph.clusters.len() + 1];
        for (index, edge) in graph.edges.iter().enumerate() {
            if edge.kind == EdgeKind::Apply {
                continue;
            }
            if let Some((cluster, from, to)) = meeting(graph, edge.from, edge.to) {
                let source = (from != edge.from).then_some(edge.from);
                let group = group(edge.kind, source);
                let link = Link { from: item[from], to: item[to], group };
                links[slot(cluster)].push((index, link));
            }
        }
        let layout = Layout {
            nodes: vec![Frame::default(); count],
            columns: vec![0; count],
            rows: vec![0; count],
            clusters: vec![Frame::default(); graph.clusters.len()],
            ..Layout::default()
        };
        Self { graph, layout, applied: graph.applied(), members, links }
    }

    fn lay_out(&mut self, cluster: Option<usize>) -> Manifest {
        let slot = cluster.map_or(0, |cluster| cluster + 1);
        let members = std::mem::take(&mut self.members[slot]);
        let links = std::mem::take(&mut self.links[slot]);
        let items: Vec<Item> = members.iter().map(|&at| self.item(at)).collect();
        let plain: Vec<Link> = links.iter().map(|(_, link)| *link).collect();
        let laid = lay_out(&items, &plain);
        let (width, height) = (laid.width, laid.height);
        match cluster {
            Some(cluster) => {
                let title = cells(&visible(&self.graph.clusters[cluster].manifest)).min(MAX_CELLS);
                let title = title as i64 * KIND_CELL / 100;
                let frame = &mut self.layout.clusters[cluster];
                frame.width = width.max(title) + 2 * FRAME_PADDING;
                frame.height = height + FRAME_TITLE + 2 * FRAME_PADDING;
            }
            None => (self.layout.width, self.layout.height) = (width, height),
        }
        Manifest { cluster, members, links, laid }
    }

    /// A node with the child manifest that it applies.
    fn item(&mut self, at: usize) -> Item {
        let node = &self.graph.nodes[at];
        let width = node_width(node);
        let height = NODE_HEIGHT + node.note.as_ref().map_or(0, |_| NOTE_HEIGHT);
        self.layout.nodes[at] = Frame { x: 0, y: 0, width, height };
        match self.applied[at] {
            None => Item { width, height, port: NODE_PORT, is_stretched: true },
            Some(cluster) => {
                let frame = self.layout.clusters[cluster];
                let height = frame.height.max(height);
                let width = width + APPLY_GAP + frame.width;
                Item { width, height, port: NODE_PORT, is_stretched: false }
            }
        }
    }

    /// Moves a manifest to where its parent has made room.
    fn place(&mut self, manifest: &Manifest) {
        let (x, y) = self.origin(manifest);
        for (item, &at) in manifest.members.iter().enumerate() {
            let laid = &manifest.laid;
            let frame = &mut self.layout.nodes[at];
            (frame.x, frame.y) = (x + laid.x[item], y + laid.y[item]);
            self.layout.columns[at] = laid.columns[item];
            self.layout.rows[at] = laid.rows[item];
            match self.applied[at] {
                None => frame.width = laid.widths[item],
                Some(cluster) => {
                    let (x, y) = (frame.x + frame.width + APPLY_GAP, frame.y);
                    let child = &mut self.layout.clusters[cluster];
                    (child.x, child.y) = (x, y);
                }
            }
        }
    }

    /// The top left corner of what is in a manifest.
    fn origin(&self, manifest: &Manifest) -> (i64, i64) {
        manifest.cluster.map_or((0, 0), |cluster| {
            let frame = self.layout.clusters[cluster];
            (frame.x + FRAME_PADDING, frame.y + FRAME_TITLE + FRAME_PADDING)
        })
    }

    fn draw(&mut self, manifest: &Manifest) {
        let (x, y) = self.origin(manifest);
        let laid = &manifest.laid;
        let moved =
            |lane: &Lane| Lane { left: lane.left + x, right: lane.right + x, y: lane.y + y };
        for trunk in &laid.trunks {
            let (kind, source) = of_group(trunk.group);
            let (start, leave) = self.start(manifest, trunk.from, kind, source);
            self.layout.lines.push(Line {
                kind,
                start,
                leave,
                lanes: trunk.lanes.iter().map(moved).collect(),
                end: None,
                edge: None,
            });
        }
        for ((index, link), branch) in manifest.links.iter().zip(&laid.branches) {
            let edge = self.graph.edges[*index];
            let target = self.layout.nodes[edge.to];
            let lane = branch.and_then(|(trunk, step)| laid.trunks[trunk].lanes.get(step));
            let (start, leave) = match lane.map(moved) {
                Some(lane) => ((lane.right, lane.y), lane.right),
                None => self.start(manifest, link.from, edge.kind, of_group(link.group).1),
            };
            self.layout.lines.push(Line {
                kind: edge.kind,
                start,
                leave,
                lanes: Vec::new(),
                end: Some((target.x, target.y + NODE_PORT + below(edge.kind))),
                edge: Some(*index),
            });
        }
        for &at in &manifest.members {
            if let Some(cluster) = self.applied[at] {
                let (start, frame) = (self.right(at), self.layout.clusters[cluster]);
                self.layout.lines.push(Line {
                    kind: EdgeKind::Apply,
                    start,
                    leave: frame.x,
                    lanes: Vec::new(),
                    end: Some((frame.x, start.1)),
                    edge: None,
                });
            }
        }
    }

    /// Where a line leaves an item, and up to where it is straight. A line out
    /// of a child manifest begins at the resource there.
    fn start(
        &self,
        manifest: &Manifest,
        item: usize,
        kind: EdgeKind,
        source: Option<usize>,
    ) -> ((i64, i64), i64) {
        let ((x, y), leave) = match source {
            Some(source) => {
                let start = self.right(source);
                (start, start.0)
            }
            None => {
                let (x, _) = self.origin(manifest);
                (self.exit(manifest.members[item]), x + manifest.laid.column_ends[item])
            }
        };
        ((x, y + below(kind)), leave)
    }

    fn right(&self, at: usize) -> (i64, i64) {
        let frame = self.layout.nodes[at];
        (frame.x + frame.width, frame.y + NODE_PORT)
    }

    /// Where lines leave a node, behind the child manifest that it applies.
    fn exit(&self, at: usize) -> (i64, i64) {
        let (x, y) = self.right(at);
        self.applied[at].map_or((x, y), |cluster| {
            let frame = self.layout.clusters[cluster];
            (frame.x + frame.width, y)
        })
    }
}

/// How much lower lines of a kind meet a node.
fn below(kind: EdgeKind) -> i64 {
    if kind == EdgeKind::Subscribe { SUBSCRIBE_PORT } else { 0 }
}

/// The lines that may share lanes: of one kind, and from one resource.
fn group(kind: EdgeKind, source: Option<usize>) -> usize {
    source.map_or(0, |source| 2 * (source + 1)) + usize::from(kind == EdgeKind::Subscribe)
}

/// What a group was made of.
fn of_group(group: usize) -> (EdgeKind, Option<usize>) {
    let kind = if group % 2 == 1 { EdgeKind::Subscribe } else { EdgeKind::Require };
    (kind, (group / 2).checked_sub(1))
}

/// The manifest in which the ways up from two nodes meet, and the nodes of it
/// that the ways lead through.
fn meeting(graph: &Graph, from: usize, to: usize) -> Option<(Option<usize>, usize, usize)> {
    let way = |mut at: usize| {
        let mut way = vec![at];
        while let Some(cluster) = graph.nodes[at].cluster {
            at = graph.clusters[cluster].node;
            way.push(at);
        }
        way
    };
    let to_way = way(to);
    way(from).into_iter().find_map(|from| {
        let cluster = graph.nodes[from].cluster;
        let to = to_way.iter().copied().find(|&to| graph.nodes[to].cluster == cluster)?;
        (from != to).then_some((cluster, from, to))
    })
}

fn node_width(node: &Node) -> i64 {
    let name = cells(&visible(&node.name)).min(MAX_CELLS) as i64 * NAME_CELL;
    let outcome = node.decision.as_ref().map_or(0, |found| found.outcome.word().len() + 5);
    let kind = (cells(&super::svg::caption(node)).min(MAX_CELLS) + outcome) as i64 * KIND_CELL;
    let remark = node.note.as_deref().map_or(0, |text| cells(&visible(text)).min(MAX_CELLS));
    (name.max(kind).max(remark as i64 * KIND_CELL) / 100 + NODE_PADDING)
        .clamp(NODE_WIDTH.0, NODE_WIDTH.1)
}
