//! Collects the graph of a manifest and its child manifests.

use std::collections::HashMap;

use ccm_engine::{AnyResource, Child, Engine, Manifest, RunOptions};
use ccm_host::Host;
use ccm_model::ResourceRef;

use super::{Cluster, Edge, EdgeKind, Graph, Node};
use crate::decision::Decisions;
use crate::visit::{MAX_CHILDREN, open_child};

/// The graph of a manifest and of the child manifests that can be read now. One
/// that is not there, or that `control` skips, is noted at its `apply` resource.
/// `decisions` are what a run would do, if that is to be shown.
pub fn graph(
    engine: &Engine,
    manifest: &Manifest,
    options: &RunOptions,
    decisions: Option<&Decisions>,
) -> Graph {
    let graph = Graph { manifest: manifest.name.clone(), ..Graph::default() };
    let mut collecting = Collecting { engine, options, decisions, graph, known: HashMap::new() };
    collecting.manifest(manifest, None, &[]);
    collecting.graph
}

struct Collecting<'a> {
    engine: &'a Engine,
    options: &'a RunOptions,
    decisions: Option<&'a Decisions>,
    graph: Graph,
    /// The node that a reference means: the last one that ran.
    known: HashMap<ResourceRef, usize>,
}

impl Collecting<'_> {
    fn manifest(&mut self, manifest: &Manifest, cluster: Option<usize>, route: &[String]) {
        let host = &self.options.host;
        let resources = &manifest.declarations.resources;
        for resource in resources {
            host.add_secrets(resource.secrets());
        }
        let source = manifest.source();
        let mut counts = HashMap::new();
        for resource in resources {
            let line = resource.span().map(|span| source.line(span.start));
            let mut node = self.node(&**resource, line, cluster);
            if let Some(decisions) = self.decisions {
                let name = node.display();
                let count = counts.entry(name.clone()).or_default();
                node.decision = decisions.nth(&name, route, *count).cloned();
                *count += 1;
            }
            let at = self.graph.nodes.len();
            self.graph.nodes.push(node);
            self.references(at, &**resource);
            if let Some(child) = resource.child()
                && let Err(note) = self.child(manifest, &**resource, &child, at, route)
            {
                self.note(at, note);
            }
            // An `apply` resource is done after the resources of its manifest.
            let common = resource.common();
            for name in std::iter::once(&common.name).chain(&common.alias) {
                self.known.insert(ResourceRef::new(resource.kind(), name), at);
            }
        }
    }

    fn node(
        &mut self,
        resource: &dyn AnyResource,
        line: Option<usize>,
        cluster: Option<usize>,
    ) -> Node {
        let common = resource.common();
        let host = &self.options.host;
        Node {
            kind: resource.kind().to_owned(),
            name: redacted(host, &common.name),
            alias: common.alias.as_deref().map(|alias| redacted(host, alias)),
            cluster,
            line,
            note: None,
            decision: None,
        }
    }

    fn references(&mut self, at: usize, resource: &dyn AnyResource) {
        let lists = [
            (EdgeKind::Require, &*resource.common().require),
            (EdgeKind::Subscribe, resource.subscribe()),
        ];
        for (kind, references) in lists {
            for reference in references {
                match self.known.get(reference) {
                    Some(&from) => self.graph.edges.push(Edge { from, to: at, kind }),
                    None => {
                        let name = redacted(&self.options.host, &reference.to_string());
                        self.note(at, format!("{name} is in none of these manifests"));
                    }
                }
            }
        }
    }

    fn note(&mut self, at: usize, note: String) {
        let notes = self.graph.nodes[at].note.take().into_iter().chain([note]);
        self.graph.nodes[at].note = Some(notes.collect::<Vec<_>>().join("; "));
    }

    /// Adds the manifest that a resource applies, or says why it is not shown.
    fn child(
        &mut self,
        manifest: &Manifest,
        resource: &dyn AnyResource,
        child: &Child<'_>,
        at: usize,
        route: &[String],
    ) -> Result<(), String> {
        if self.graph.clusters.len() == MAX_CHILDREN {
            return Err(format!("there are more than {MAX_CHILDREN} child manifests"));
        }
        let loaded = open_child(self.engine, manifest, resource, child, self.options, route.len())?;
        let loaded = loaded.ok_or("skipped by control")?;
        let cluster = self.graph.clusters.len();
        let manifest = redacted(&self.options.host, child.path);
        self.graph.clusters.push(Cluster { manifest, node: at });
        let to = self.graph.nodes.len();
        let name = self.options.host.redactor().name(child.name).into_owned();
        self.manifest(&loaded, Some(cluster), &[route, &[name]].concat());
        if to < self.graph.nodes.len() {
            self.graph.edges.push(Edge { from: at, to, kind: EdgeKind::Apply });
        }
        Ok(())
    }
}

fn redacted(host: &Host, text: &str) -> String {
    host.redactor().text(text).into_owned()
}
