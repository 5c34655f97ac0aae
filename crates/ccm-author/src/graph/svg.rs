//! Renders a graph as a self-contained SVG: no scripts, no references, system
//! fonts.
//!
//! What is drawn has a background of its own, light or dark as the viewer
//! prefers, and says everything in words and signs besides colours.

use std::fmt::Write as _;

use super::labels::{cells, shorten, visible};
use super::layout::{Frame, Layout, Line, MAX_CELLS};
use super::{EdgeKind, Graph, Node};
use ccm_model::Outcome;
use govalue::escape::xml;

const MARGIN: i64 = 24;
const HEADER: i64 = 40;
const LEGEND: i64 = 44;
/// The least width, so that header and legend have room.
const MIN_WIDTH: i64 = 480;

/// Appends formatted text to a string, which cannot fail.
macro_rules! push {
    ($out:expr, $($shown:tt)*) => {{
        let _ = write!($out, $($shown)*);
    }};
}

const STYLE: &str = "\
svg{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;font-size:12px}
.page{fill:#fff}.box{fill:#fff;stroke:#8c959f}.frame{fill:#57606a;fill-opacity:.06;stroke:#8c959f}
.name,.head{fill:#1f2328}.kind,.small{fill:#57606a;font-size:10.5px}.head{font-size:14px;font-weight:600}
.line{fill:none;stroke:#6e7781;stroke-width:1.4}.tip{fill:#6e7781}.subscribe{stroke-dasharray:6 4}
.mark{fill:#8c959f}.word{font-size:10.5px;font-weight:600}.note{font-style:italic}
.create{fill:#1a7f37}.change,.run{fill:#8a5a00}.remove,.failed{fill:#c4212c}.refresh{fill:#0a5cc2}
.provisional{fill:#7a3fc9}.skipped,.stable{fill:#57606a}
@media (prefers-color-scheme:dark){.page{fill:#0d1117}.box{fill:#161b22;stroke:#6e7681}
.frame{fill:#8b949e;stroke:#6e7681}.name,.head{fill:#e6edf3}.kind,.small{fill:#9aa4af}
.line{stroke:#9aa4af}.tip{fill:#9aa4af}.mark{fill:#6e7681}
.create{fill:#4ac26b}.change,.run{fill:#e0a83a}.remove,.failed{fill:#ff7b72}.refresh{fill:#6cb0ff}
.provisional{fill:#c297ff}.skipped,.stable{fill:#9aa4af}}
@media (forced-colors:active){.page,.box{fill:Canvas}.box,.frame,.line{stroke:CanvasText}.name,.head,.kind,.small,.word,.tip{fill:CanvasText}}
";

/// Draws the graph.
pub(super) fn render(graph: &Graph, layout: &Layout) -> String {
    let outcomes = outcomes(graph);
    let legend = legend(&outcomes);
    let width = (layout.width + 2 * MARGIN).max(MIN_WIDTH).max(legend.width + 2 * MARGIN);
    let height = layout.height + HEADER + LEGEND + 2 * MARGIN;
    let title = format!("Graph of {}", visible(&graph.manifest));
    let mut out = String::with_capacity(1024 + 500 * graph.nodes.len());
    push!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" role=\"graphics-document\">\n<title>{0}</title>\n\
         <style>{STYLE}</style>\n<rect class=\"page\" width=\"{width}\" height=\"{height}\"/>\n",
        xml(&title),
    );
    let room = (width - 2 * MARGIN) as usize / 9;
    push!(
        out,
        "<text class=\"head\" x=\"{MARGIN}\" y=\"{}\">{}</text>\n\
         <text class=\"small\" x=\"{MARGIN}\" y=\"{}\">{}</text>\n",
        MARGIN + 4,
        xml(&shorten(&visible(&graph.manifest), room)),
        MARGIN + 22,
        xml(&counts(graph, &outcomes)),
    );
    push!(out, "<g transform=\"translate({MARGIN} {})\">\n", MARGIN + HEADER);
    for (cluster, frame) in graph.clusters.iter().zip(&layout.clusters) {
        draw_frame(&mut out, &cluster.manifest, *frame);
    }
    for line in &layout.lines {
        draw_line(&mut out, graph, line);
    }
    for (node, frame) in graph.nodes.iter().zip(&layout.nodes) {
        draw_node(&mut out, node, *frame);
    }
    push!(
        out,
        "</g>\n<g transform=\"translate({MARGIN} {})\">\n{}</g>\n</svg>\n",
        height - MARGIN,
        legend.text
    );
    out
}

/// What is written above the name of a node.
pub(super) fn caption(node: &Node) -> String {
    match &node.alias {
        Some(alias) => format!("{} ({})", visible(&node.kind), visible(alias)),
        None => visible(&node.kind).into_owned(),
    }
}

/// How often each outcome occurs, in the order of the legend.
fn outcomes(graph: &Graph) -> Vec<(Outcome, usize)> {
    let count = |outcome| {
        let decisions = graph.nodes.iter().filter_map(|node| node.decision.as_ref());
        decisions.filter(|decision| decision.outcome == outcome).count()
    };
    let all = Outcome::ALL.into_iter().map(|outcome| (outcome, count(outcome)));
    all.filter(|&(_, count)| count > 0).collect()
}

fn counts(graph: &Graph, outcomes: &[(Outcome, usize)]) -> String {
    let plural =
        |count: usize, word: &str| format!("{count} {word}{}", if count == 1 { "" } else { "s" });
    let mut text = plural(graph.nodes.len(), "resource");
    if !graph.clusters.is_empty() {
        text += &format!(", {}", plural(graph.clusters.len(), "child manifest"));
    }
    for (index, (outcome, count)) in outcomes.iter().enumerate() {
        let before = if index == 0 { ": " } else { ", " };
        text += &format!("{before}{count} {}", outcome.word());
    }
    text
}

fn draw_frame(out: &mut String, manifest: &str, frame: Frame) {
    let Frame { x, y, width, height } = frame;
    let shown = visible(manifest);
    let room = ((width - 24).max(0) as usize * 100 / 640).min(MAX_CELLS);
    push!(
        out,
        "<g><title>{}</title><rect class=\"frame\" x=\"{x}\" y=\"{y}\" width=\"{width}\" \
         height=\"{height}\" rx=\"8\"/><text class=\"kind\" x=\"{}\" y=\"{}\">{}</text></g>\n",
        xml(&shown),
        x + 16,
        y + 24,
        xml(&shorten(&shown, room)),
    );
}

fn draw_node(out: &mut String, node: &Node, frame: Frame) {
    let Frame { x, y, width, height } = frame;
    let outcome = node.decision.as_ref().map(|decision| decision.outcome);
    let class = outcome.map_or("mark", Outcome::word);
    push!(
        out,
        "<g><title>{}</title><rect class=\"box\" x=\"{x}\" y=\"{y}\" width=\"{width}\" \
         height=\"{height}\" rx=\"5\"/><rect class=\"{class}\" x=\"{x}\" y=\"{}\" width=\"4\" \
         height=\"{}\"/>",
        xml(&tooltip(node)),
        y + 5,
        height - 10,
    );
    let caption = caption(node);
    let word = outcome.map(|outcome| format!("{} {}", outcome.glyph(), outcome.word()));
    let right = word.as_deref().map_or(0, cells);
    let room = (width - 20) as usize * 100 / 640;
    push!(
        out,
        "<text class=\"kind\" x=\"{0}\" y=\"{1}\">{2}</text>\
         <text class=\"name\" x=\"{0}\" y=\"{3}\">{4}</text>",
        x + 13,
        y + 17,
        xml(&shorten(&caption, room.saturating_sub(right + 2))),
        y + 34,
        xml(&shorten(&visible(&node.name), (width - 22).max(0) as usize * 100 / 735)),
    );
    if let Some(word) = word {
        push!(
            out,
            "<text class=\"word {class}\" x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>",
            x + width - 9,
            y + 17,
            xml(&word),
        );
    }
    if let Some(note) = &node.note {
        push!(
            out,
            "<text class=\"kind note\" x=\"{}\" y=\"{}\">{}</text>",
            x + 13,
            y + 50,
            xml(&shorten(&visible(note), room)),
        );
    }
    out.push_str("</g>\n");
}

/// Everything about a node that its box has no room for.
fn tooltip(node: &Node) -> String {
    let mut text = visible(&node.display()).into_owned();
    if let Some(alias) = &node.alias {
        text += &format!(" ({})", visible(alias));
    }
    if let Some(line) = node.line {
        text += &format!("\nline {line}");
    }
    if let Some(decision) = &node.decision {
        text += &format!("\n{} {}", decision.outcome.glyph(), decision.outcome.word());
        for change in &decision.changes {
            text += &format!("\n{}", visible(&change_text(change)));
        }
        for line in decision.error.iter().flat_map(|error| error.lines()) {
            text += &format!("\n{}", visible(line));
        }
    }
    if let Some(note) = &node.note {
        text += &format!("\n{}", visible(note));
    }
    text
}

/// A change in a few words.
fn change_text(change: &ccm_model::Change) -> String {
    let mut text = change.property.clone().into_owned();
    if change.secret {
        return text + " [redacted]";
    }
    if let Some(counts) = change.member_counts() {
        return format!("{text} {counts}");
    }
    if let Some((added, removed)) = change.line_counts() {
        return text + &format!(" +{added} -{removed} lines");
    }
    if let Some(from) = &change.from {
        text += &format!(" from {from}");
    }
    if let Some(to) = &change.to {
        text += &format!(" to {to}");
    }
    text
}

fn draw_line(out: &mut String, graph: &Graph, line: &Line) {
    let (x, y) = line.start;
    if line.kind == EdgeKind::Apply {
        let end = line.end.map_or(x, |(end, _)| end);
        push!(out, "<path class=\"line\" d=\"M{x} {}H{end}M{x} {}H{end}\"/>\n", y - 2, y + 2,);
        return;
    }
    let mut path = format!("M{x} {y}");
    let (mut x, mut y) = (x, y);
    let mut go = |path: &mut String, to_x: i64, to_y: i64| {
        if line.leave > x {
            push!(path, "H{}", line.leave);
            x = line.leave;
        }
        if y == to_y {
            push!(path, "H{to_x}");
        } else {
            let middle = x + (to_x - x) / 2;
            push!(path, "C{middle} {y} {middle} {to_y} {to_x} {to_y}");
        }
        (x, y) = (to_x, to_y);
    };
    for lane in &line.lanes {
        go(&mut path, lane.left, lane.y);
        go(&mut path, lane.right, lane.y);
    }
    let class = if line.kind == EdgeKind::Subscribe { "line subscribe" } else { "line" };
    let Some((end, end_y)) = line.end else {
        push!(out, "<path class=\"{class}\" d=\"{path}\"/>\n");
        return;
    };
    go(&mut path, end - 6, end_y);
    let title = line.edge.map(|edge| {
        let edge = graph.edges[edge];
        let [from, to] = [edge.from, edge.to].map(|at| graph.nodes[at].display());
        let verb = if edge.kind == EdgeKind::Subscribe { "subscribes to" } else { "requires" };
        format!("<title>{}</title>", xml(&visible(&format!("{to} {verb} {from}"))))
    });
    push!(
        out,
        "<g>{}<path class=\"{class}\" d=\"{path}\"/><path class=\"tip\" \
         d=\"M{end} {end_y}l-8 -4v8z\"/></g>\n",
        title.unwrap_or_default(),
    );
}

struct Legend {
    text: String,
    width: i64,
}

/// What lines and signs mean.
fn legend(outcomes: &[(Outcome, usize)]) -> Legend {
    let mut text = String::new();
    let mut x = 0;
    let lines = [
        ("require", "<path class=\"line\" d=\"MX -4h28\"/>"),
        ("subscribe", "<path class=\"line subscribe\" d=\"MX -4h28\"/>"),
        ("child manifest", "<path class=\"line\" d=\"MX -6h28MX -2h28\"/>"),
    ];
    for (word, line) in lines {
        text += &line.replace('X', &x.to_string());
        push!(text, "<text class=\"small\" x=\"{}\">{word}</text>\n", x + 34);
        x += 34 + word.len() as i64 * 7 + 18;
    }
    for (outcome, _) in outcomes {
        let word = outcome.word();
        let glyph = outcome.glyph().to_string();
        push!(text, "<text class=\"word {word}\" x=\"{x}\">{} {word}</text>\n", xml(&glyph));
        x += (word.len() as i64 + 2) * 7 + 18;
    }
    Legend { text, width: x }
}
