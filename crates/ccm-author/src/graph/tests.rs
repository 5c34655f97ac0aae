use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::*;
use ccm_model::Outcome;

fn node(name: &str, cluster: Option<usize>) -> Node {
    Node { kind: "file".into(), name: name.into(), cluster, ..Node::default() }
}

/// A graph by numbers: each node refers to some before it, and some apply a
/// child manifest with the nodes that follow.
fn graph(shape: &[(u8, u8, u8)], name: &str) -> Graph {
    let mut graph = Graph { manifest: name.into(), ..Graph::default() };
    let mut open: Vec<usize> = Vec::new();
    for (at, &(first, second, action)) in shape.iter().enumerate() {
        let cluster = open.last().copied();
        let outcome = Outcome::ALL[usize::from(first) % Outcome::ALL.len()];
        graph.nodes.push(Node {
            alias: (first % 3 == 0).then(|| name.into()),
            note: (second % 5 == 0).then(|| name.into()),
            decision: (action % 2 == 0).then(|| Decision {
                outcome,
                changes: Vec::new(),
                error: Some(name.into()),
            }),
            ..node(&format!("{name}{at}"), cluster)
        });
        for (back, kind) in [(first, EdgeKind::Require), (second, EdgeKind::Subscribe)] {
            if back > 0 && usize::from(back) <= at {
                graph.edges.push(Edge { from: at - usize::from(back), to: at, kind });
            }
        }
        match action % 8 {
            0 if open.len() < 4 && at + 1 < shape.len() => {
                let cluster = graph.clusters.len();
                graph.clusters.push(Cluster { manifest: name.into(), node: at });
                graph.edges.push(Edge { from: at, to: at + 1, kind: EdgeKind::Apply });
                open.push(cluster);
            }
            // A child manifest has at least one resource.
            1 if cluster.is_some_and(|cluster| graph.clusters[cluster].node + 1 < at) => {
                open.pop();
            }
            _ => {}
        }
    }
    graph
}

fn overlap(one: Frame, other: Frame) -> bool {
    one.x < other.x + other.width
        && other.x < one.x + one.width
        && one.y < other.y + other.height
        && other.y < one.y + one.height
}

fn contains(outer: Frame, inner: Frame) -> bool {
    outer.x < inner.x
        && outer.y < inner.y
        && inner.x + inner.width < outer.x + outer.width
        && inner.y + inner.height < outer.y + outer.height
}

fn is_inside(graph: &Graph, mut cluster: Option<usize>, outer: usize) -> bool {
    while let Some(at) = cluster {
        if at == outer {
            return true;
        }
        cluster = graph.nodes[graph.clusters[at].node].cluster;
    }
    false
}

/// Names that a careless writer would let out of their quotes.
const HOSTILE: [&str; 9] = [
    "<script>alert(1)</script>",
    "\"'`;]]}}-->&amp;&",
    "a\nb\r\t\0\x1b[31m\u{202e}\u{ffff}",
    "back\\slash \\N \\l \\\"",
    "end",
    "#quot; %% :::class",
    "- list",
    "漢字 é 🦀",
    "",
];

fn hostile() -> impl Strategy<Value = String> {
    let known = proptest::sample::select(&HOSTILE[..]).prop_map(str::to_owned);
    prop_oneof![known, ".{0,12}".prop_map(|text| text.repeat(25))]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn nothing_overlaps_and_every_child_is_in_its_frame(
        shape in proptest::collection::vec((0..12_u8, 0..9_u8, any::<u8>()), 1..60),
    ) {
        let graph = graph(&shape, "/etc/app/some.conf");
        let layout = graph.layout();
        let whole = Frame { x: -1, y: -1, width: layout.width + 2, height: layout.height + 2 };
        for (at, frame) in layout.nodes.iter().enumerate() {
            prop_assert!(contains(whole, *frame), "{frame:?} is outside of {whole:?}");
            for other in &layout.nodes[at + 1..] {
                prop_assert!(!overlap(*frame, *other), "{frame:?} {other:?}");
            }
            for (cluster, outer) in layout.clusters.iter().enumerate() {
                if is_inside(&graph, graph.nodes[at].cluster, cluster) {
                    prop_assert!(contains(*outer, *frame), "{outer:?} {frame:?}");
                } else {
                    prop_assert!(!overlap(*outer, *frame), "{outer:?} {frame:?}");
                }
            }
        }
        for edge in graph.edges.iter().filter(|edge| edge.kind != EdgeKind::Apply) {
            let [from, to] = [edge.from, edge.to].map(|at| layout.nodes[at]);
            if graph.nodes[edge.from].cluster == graph.nodes[edge.to].cluster {
                prop_assert!(from.x + from.width < to.x, "a line leads back");
                prop_assert!(layout.columns[edge.from] < layout.columns[edge.to]);
            }
        }
    }

    #[test]
    fn no_name_breaks_a_format(
        shape in proptest::collection::vec((0..5_u8, 0..5_u8, any::<u8>()), 1..12),
        name in hostile(),
    ) {
        let graph = graph(&shape, &name);
        check_xml(&graph.render(GraphFormat::Svg));
        check_dot(&graph.render(GraphFormat::Dot));
        check_mermaid(&graph.render(GraphFormat::Mermaid));
        let json: GraphDocument =
            serde_json::from_str(&graph.render(GraphFormat::Json)).unwrap();
        prop_assert_eq!(json.nodes.len(), graph.nodes.len());
        prop_assert!(json.nodes[0].name.starts_with(&name));
        prop_assert_eq!(graph.render(GraphFormat::Svg), graph.clone().render(GraphFormat::Svg));
    }
}

/// Elements nest, text and attributes hold nothing that XML reads otherwise, and
/// nothing comes from elsewhere.
fn check_xml(text: &str) {
    assert!(!text.contains(|c: char| c.is_control() && c != '\n'), "a control character");
    assert!(!text.contains('\u{ffff}') && !text.contains('\u{202e}'));
    let mut open: Vec<&str> = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find('<') {
        check_entities(&rest[..at]);
        assert!(!rest[..at].contains('>'), "a stray bracket: {:.60}", &rest[..at]);
        let end = at + rest[at..].find('>').expect("a tag ends");
        let tag = &rest[at + 1..end];
        assert!(!tag.contains('<'), "a bracket in a tag: {tag:.60}");
        assert_eq!(tag.matches('"').count() % 2, 0, "{tag}");
        check_entities(tag);
        let name = tag.trim_start_matches('/').split([' ', '/']).next().unwrap_or_default();
        let known = ["svg", "title", "style", "rect", "g", "path", "text"];
        assert!(known.contains(&name), "an element {name:.60}");
        for attribute in ["href", "on", "src"] {
            assert!(!tag.contains(&format!(" {attribute}")), "{tag}");
        }
        if tag.starts_with('/') {
            assert_eq!(open.pop(), Some(name));
        } else if !tag.ends_with('/') {
            open.push(name);
        }
        rest = &rest[end + 1..];
    }
    assert!(open.is_empty(), "{open:?}");
    assert!(!text.contains("url(") && !text.contains("@import"));
}

fn check_entities(text: &str) {
    for (at, _) in text.match_indices('&') {
        let known = ["&lt;", "&gt;", "&amp;", "&quot;", "&#39;"];
        assert!(known.iter().any(|entity| text[at..].starts_with(entity)), "{:.20}", &text[at..]);
    }
}

/// Words, numbers, quoted strings and punctuation of DOT, with braces that match.
fn check_dot(text: &str) {
    let mut braces = 0_i32;
    let mut characters = text.chars();
    while let Some(c) = characters.next() {
        match c {
            '"' => loop {
                match characters.next() {
                    Some('\\') => assert!(matches!(characters.next(), Some('\\' | '"'))),
                    Some('"') => break,
                    Some(inner) => assert!(!inner.is_control()),
                    None => panic!("a string does not end"),
                }
            },
            '{' => braces += 1,
            '}' => braces -= 1,
            _ => {
                let is_known = c.is_ascii_alphanumeric() || "_=[],;->\n ".contains(c);
                assert!(is_known, "{c:?} outside of a string");
            }
        }
        assert!(braces >= 0);
    }
    assert_eq!(braces, 0);
}

/// Every line of a flowchart is one that Mermaid knows.
fn check_mermaid(text: &str) {
    let is_id = |word: &str| {
        let digits = word.strip_prefix(['n', 'c']).unwrap_or("x");
        !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
    };
    let mut open = 0;
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("flowchart LR"));
    for line in lines.map(str::trim_start) {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["end"] => open -= 1,
            ["classDef", _, _] => {}
            [from, "-->" | "-.->" | "===", to] => assert!(is_id(from) && is_id(to), "{line}"),
            _ => {
                let line = line.strip_prefix("subgraph ").inspect(|_| open += 1).unwrap_or(line);
                let (id, rest) = line.split_once("[\"").expect(line);
                let (label, rest) = rest.split_once("\"]").expect(line);
                assert!(is_id(id), "{line}");
                assert!(!label.contains(['"', '<', '>', '`', '\\', '&', '[', ']']), "{label}");
                let class = rest.strip_prefix(":::").unwrap_or(rest);
                assert!(class.bytes().all(|byte| byte.is_ascii_lowercase()), "{line}");
            }
        }
        assert!(open >= 0);
    }
    assert_eq!(open, 0);
}

/// A manifest of this many resources that refer to up to two of those before.
fn large(count: usize) -> Graph {
    let mut random = 1_u64;
    let mut next = |limit: usize| {
        random =
            random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) as usize % limit
    };
    let mut graph = Graph { manifest: "large.yaml".into(), ..Graph::default() };
    for at in 0..count {
        graph.nodes.push(node(&format!("/etc/app/conf.d/{at}.conf"), None));
        for kind in [EdgeKind::Require, EdgeKind::Subscribe] {
            if at > 0 && next(3) > 0 {
                let from = at - 1 - next(at.min(40));
                graph.edges.push(Edge { from, to: at, kind });
            }
        }
    }
    graph
}

#[test]
fn ten_thousand_resources_are_laid_out_in_time() {
    let graph = large(10_000);
    let started = Instant::now();
    let layout = graph.layout();
    let taken = started.elapsed();
    assert_eq!(layout.nodes.len(), 10_000);
    // One second is the aim with optimizations; tests run without.
    assert!(taken < Duration::from_secs(10), "{taken:?}");
}

#[test]
fn rows_keep_the_order_of_declaration_unless_lines_cross() {
    let mut graph = Graph::default();
    for name in ["a", "b", "c", "d"] {
        graph.nodes.push(node(name, None));
    }
    let edge = |from, to| Edge { from, to, kind: EdgeKind::Require };
    graph.edges = vec![edge(0, 2), edge(1, 3)];
    let layout = graph.layout();
    assert_eq!((layout.columns, layout.rows), (vec![0, 0, 1, 1], vec![0, 1, 0, 1]));
    graph.edges = vec![edge(1, 2), edge(0, 3)];
    assert_eq!(graph.layout().rows, [0, 1, 1, 0]);
}

#[test]
fn the_picture_of_a_small_manifest() {
    let mut graph = Graph { manifest: "site.yaml".into(), ..Graph::default() };
    graph.nodes.push(Node { line: Some(3), ..node("/etc/app", None) });
    graph.nodes.push(Node { kind: "apply".into(), ..node("child.yaml", None) });
    graph.nodes.push(node("/etc/app/x", Some(0)));
    graph.clusters.push(Cluster { manifest: "child.yaml".into(), node: 1 });
    graph.edges = vec![
        Edge { from: 0, to: 1, kind: EdgeKind::Require },
        Edge { from: 1, to: 2, kind: EdgeKind::Apply },
        Edge { from: 0, to: 2, kind: EdgeKind::Subscribe },
    ];
    insta::assert_snapshot!(graph.render(GraphFormat::Dot), @r#"
    digraph "site.yaml" {
      rankdir=LR;
      compound=true;
      node [shape=box];
      n0 [label="file#/etc/app", tooltip="file#/etc/app"];
      n1 [label="apply#child.yaml", tooltip="apply#child.yaml"];
      subgraph cluster_0 {
        label="child.yaml";
        n2 [label="file#/etc/app/x", tooltip="file#/etc/app/x"];
      }
      n0 -> n1;
      n1 -> n2 [lhead=cluster_0, color="black:invis:black", arrowhead=none];
      n0 -> n2 [style=dashed];
    }
    "#);
    insta::assert_snapshot!(graph.render(GraphFormat::Mermaid), @r#"
    flowchart LR
      n0["file#35;/etc/app"]
      n1["apply#35;child.yaml"]
      subgraph c0["child.yaml"]
        n2["file#35;/etc/app/x"]
      end
      n0 --> n1
      n1 === c0
      n0 -.-> n2
    "#);
    let svg = graph.render(GraphFormat::Svg);
    for part in [
        "<title>Graph of site.yaml</title>",
        "<title>file#/etc/app\nline 3</title>",
        ">3 resources, 1 child manifest</text>",
        "<title>apply#child.yaml requires file#/etc/app</title><path class=\"line\"",
        "<title>file#/etc/app/x subscribes to file#/etc/app</title><path class=\"line subscribe\"",
        "<title>child.yaml</title><rect class=\"frame\"",
        "prefers-color-scheme:dark",
    ] {
        assert!(svg.contains(part), "{part} is not in {svg}");
    }
    let is_double = |line: &str| line.matches('M').count() == 2 && line.matches('H').count() == 2;
    assert_eq!(svg.lines().filter(|line| is_double(line)).count(), 1);
}

#[test]
fn outcomes_are_told_by_sign_and_word() {
    let mut graph = Graph { manifest: "site.yaml".into(), ..Graph::default() };
    for outcome in Outcome::ALL {
        let decision = Decision { outcome, changes: Vec::new(), error: None };
        graph.nodes.push(Node { decision: Some(decision), ..node(outcome.word(), None) });
    }
    let svg = graph.render(GraphFormat::Svg);
    for outcome in Outcome::ALL {
        let glyph = outcome.glyph().to_string().replace('>', "&gt;");
        let shown = format!(">{glyph} {}</text>", outcome.word());
        assert_eq!(svg.matches(&shown).count(), 2, "{shown}");
    }
}
