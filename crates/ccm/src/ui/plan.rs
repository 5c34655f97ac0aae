//! Prints plans: changes in order, then counts.

use std::fmt::Write as _;

use ccm_engine::Stop;
use ccm_model::{Outcome, Plan, PlanDifference, PlannedResource};

use super::row::{Row, RowLayout};
use super::summary::failures;
use super::text::{columns, printable, wrap_list};
use super::theme::{BOLD, Theme};
use super::{Amount, counts, summary};

/// Names are aligned up to this column; longer ones push their text aside.
const COLUMN: usize = 50;

/// How much of a plan is shown.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PlanView {
    pub(crate) amount: Amount,
    /// Failures in full and counts at the end.
    pub(crate) has_summary: bool,
    /// Why the preview ended early: more may change than is shown.
    pub(crate) stop: Option<Stop>,
    /// The plan is saved, so that it can be applied.
    pub(crate) is_saved: bool,
}

/// A line of the plan: a resource at its depth.
struct Line<'a> {
    resource: &'a PlannedResource,
    depth: usize,
}

/// A plan is handed on in parts of about this many bytes: one of many resources
/// with diffs is long.
const PART: usize = 64 << 10;

pub(super) fn render(plan: &Plan, theme: Theme, view: PlanView, print: &mut dyn FnMut(&str)) {
    let mut lines = Vec::new();
    collect(&plan.resources, 0, view.amount, &mut lines);
    let is_quiet = view.amount == Amount::Quiet;
    let mut out = String::new();
    if !is_quiet {
        let manifest = printable(&plan.manifest);
        let title = format!("Plan for {manifest} on {}", printable(&plan.host.name));
        out = format!("{}\n", theme.paint(BOLD, &title));
        if !lines.is_empty() {
            out.push('\n');
        }
    }
    let ends = lines.iter().filter_map(|line| {
        let width = 4 + 2 * line.depth + columns(&Row::of_plan(line.resource).label());
        (width <= COLUMN).then_some(width)
    });
    let column = ends.max().unwrap_or(0);
    // If there are only failures, print each in full immediately.
    let repeats_failures = view.has_summary && !is_quiet;
    let mut has_printed = false;
    for Line { resource, depth } in lines {
        if out.len() > PART {
            print(&out);
            out.clear();
            has_printed = true;
        }
        let row = Row::of_plan(resource);
        let is_heading = !resource.children.is_empty() && resource.outcome != Outcome::Failed;
        if is_heading {
            summary::heading(&mut out, &row.label(), depth, theme);
        } else {
            row.write(&mut out, theme, RowLayout { depth, column, cuts_errors: repeats_failures });
        }
    }
    if !view.has_summary {
        return print(&out);
    }
    if repeats_failures {
        let mut failed = Vec::new();
        repeated(&plan.resources, None, theme, &mut failed);
        out.push_str(&failures(&failed, theme));
    }
    let reason = match view.stop {
        None => "",
        Some(Stop::Cancelled(_)) => "Interrupted: ",
        Some(Stop::Failed) => "Stopped at the first failure: ",
    };
    if has_printed || !out.is_empty() {
        out.push('\n');
    }
    for line in wrap_list(&format!("{reason}{}", counts::planned(&plan.summary)), theme.width) {
        let _ = writeln!(out, "{line}");
    }
    if view.is_saved && plan.summary.provisional > 0 && !is_quiet {
        out.push_str("Applying the saved plan accepts either outcome of a provisional resource\n");
    }
    print(&out);
}

/// Two plans side by side: what each resource was and is to become, then its row
/// in the second plan.
pub(super) fn render_differences(differences: &[PlanDifference], theme: Theme) -> String {
    let mut out = String::new();
    for PlanDifference { resource, before, after } in differences {
        let word = |planned: &Option<PlannedResource>| {
            planned.as_ref().map_or("not in the plan", |planned| planned.outcome.word())
        };
        let (was, is) = (word(before), word(after));
        let name = theme.paint(BOLD, &printable(resource));
        let outcome =
            if was == is { is.to_owned() } else { format!("{was} {} {is}", theme.arrow()) };
        let _ = writeln!(out, "{name}: {outcome}");
        for (planned, mark) in [(before, "was"), (after, "now")] {
            if let Some(planned) = planned.as_ref().filter(|found| !found.changes.is_empty()) {
                let _ = writeln!(out, "  {mark}");
                let place = RowLayout { depth: 1, column: 0, cuts_errors: true };
                Row::of_plan(planned).write(&mut out, theme, place);
            }
        }
    }
    out
}

/// The resources that are shown, and those that they stand in.
fn collect<'a>(
    resources: &'a [PlannedResource],
    depth: usize,
    amount: Amount,
    lines: &mut Vec<Line<'a>>,
) {
    for resource in resources {
        let at = lines.len();
        lines.push(Line { resource, depth });
        collect(&resource.children, depth + 1, amount, lines);
        let has_shown = lines.len() > at + 1;
        let is_shown = match (resource.children.is_empty(), amount) {
            (false, _) => has_shown || resource.outcome == Outcome::Failed,
            (true, Amount::Verbose) => true,
            (true, amount) => {
                let row = Row::of_plan(resource);
                match resource.outcome {
                    Outcome::Failed => true,
                    Outcome::Skipped => row.is_unmet(),
                    Outcome::Stable if row.deferred.is_empty() => false,
                    _ => amount == Amount::Normal,
                }
            }
        };
        if !is_shown {
            lines.truncate(at);
        }
    }
}

/// The failures of a plan in full. A resource that applies a manifest fails for
/// those within it, which say more.
fn repeated(
    resources: &[PlannedResource],
    manifest: Option<&str>,
    theme: Theme,
    all: &mut Vec<String>,
) {
    for resource in resources {
        let before = all.len();
        repeated(&resource.children, Some(&resource.name), theme, all);
        if resource.outcome == Outcome::Failed && all.len() == before {
            let mut text = String::new();
            Row::of_plan(resource).again(manifest).write(&mut text, theme, RowLayout::default());
            all.push(text);
        }
    }
}

#[cfg(test)]
mod tests {
    use ccm_model::{Change, Counts, PlanHost};

    use super::*;

    fn row(kind: &'static str, name: &str, outcome: Outcome) -> PlannedResource {
        PlannedResource { kind: kind.into(), name: name.into(), outcome, ..Default::default() }
    }

    fn plan() -> Plan {
        let error = Some("no such user\nask for another".to_owned());
        let failed = PlannedResource { error, ..row("file", "/srv/own", Outcome::Failed) };
        let children = vec![
            row("file", "/srv/same", Outcome::Stable),
            row("file", "/srv/old", Outcome::Remove),
            failed,
        ];
        let error = Some("1 of 3 resources failed".to_owned());
        let nested = PlannedResource { error, children, ..row("apply", "c.yaml", Outcome::Failed) };
        let quiet = PlannedResource {
            children: vec![row("file", "/srv/calm", Outcome::Stable)],
            ..row("apply", "calm.yaml", Outcome::Stable)
        };
        let changes = vec![Change::of("ensure").from("absent").to("1.22.1")];
        let package = PlannedResource { changes, ..row("package", "nginx", Outcome::Create) };
        let modes = vec![
            Change::of("mode").from("0600").to("0644"),
            Change::of("content").from("a").to("b").lines((2, 1)),
        ];
        let diff = Some("@@ -1 +1 @@\n-a\n+b\n".to_owned());
        let name = "/etc/nginx/conf.d/a-name-that-is-longer-than-the-column.conf";
        let file = PlannedResource {
            changes: modes,
            diff,
            alias: Some("config".into()),
            ..row("file", name, Outcome::Change)
        };
        let service = PlannedResource {
            verbs: vec![ccm_model::Verb::Reloaded],
            because: vec!["file#config".into()],
            ..row("service", "nginx", Outcome::Refresh)
        };
        let skipped = row("exec", "never", Outcome::Skipped);
        Plan {
            manifest: "site.yaml".into(),
            host: PlanHost { name: "web1".into(), id: String::new() },
            summary: Counts {
                create: 1,
                change: 1,
                remove: 1,
                refresh: 1,
                failed: 1,
                stable: 2,
                skipped: 1,
                not_selected: 2,
                ..Counts::default()
            },
            resources: vec![package, file, quiet, service, nested, skipped],
            ..Plan::default()
        }
    }

    fn picture(amount: Amount, width: Option<usize>, is_utf8: bool) -> String {
        let theme = Theme { has_color: false, is_utf8, width };
        rendered(&plan(), theme, PlanView { amount, has_summary: true, ..PlanView::default() })
    }

    fn rendered(plan: &Plan, theme: Theme, view: PlanView) -> String {
        let mut text = String::new();
        render(plan, theme, view, &mut |part| text.push_str(part));
        text
    }

    #[test]
    fn long_plans_come_in_parts() {
        let resources = (0..20_000).map(|n| row("file", &format!("/{n}"), Outcome::Remove));
        let summary = Counts { remove: 20_000, not_selected: 2, ..Counts::default() };
        let plan = Plan { summary, resources: resources.collect(), ..plan() };
        let theme = Theme { has_color: false, is_utf8: true, width: None };
        let view = PlanView { amount: Amount::Quiet, has_summary: true, ..PlanView::default() };
        assert_eq!(rendered(&plan, theme, view), "20000 to remove; 2 not selected\n");
        let mut parts = 0;
        let view = PlanView { amount: Amount::Normal, ..view };
        render(&plan, theme, view, &mut |_| parts += 1);
        assert!(parts > 2, "{parts}");
        let text = rendered(&plan, theme, view);
        assert!(text.ends_with("  - file#/19999\n\n20000 to remove; 2 not selected\n"));
        assert_eq!(text.lines().count(), 2 + 20_000 + 2);
    }

    #[test]
    fn a_plan_shows_what_would_change_and_counts() {
        insta::assert_snapshot!(picture(Amount::Normal, None, true), @"
        Plan for site.yaml on web1

          + package#nginx    absent → 1.22.1
          ~ file#/etc/nginx/conf.d/a-name-that-is-longer-than-the-column.conf (config)
                mode     0600 → 0644
                content  +2 −1
                @@ -1 +1 @@
                -a
                +b
          ↻ service#nginx    reload, because file#config changes
          ✗ apply#c.yaml
                1 of 3 resources failed
            - file#/srv/old
            ✗ file#/srv/own
                  no such user …

        Failures
          ✗ file#/srv/own  (in c.yaml)
                no such user
                ask for another

        1 to create, 1 to change, 1 to remove, 1 to refresh, 1 failed; 2 stable, 1 skipped, 2 not selected
        ");
        insta::assert_snapshot!(picture(Amount::Verbose, Some(60), false), @"
        Plan for site.yaml on web1

          + package#nginx     absent -> 1.22.1
          ~ file#/etc/nginx/conf.d/a-n...an-the-column.conf (config)
                mode     0600 -> 0644
                content  +2 -1
                @@ -1 +1 @@
                -a
                +b
            apply#calm.yaml
            = file#/srv/calm  stable
          * service#nginx     reload, because file#config changes
          x apply#c.yaml
                1 of 3 resources failed
            = file#/srv/same  stable
            - file#/srv/old
            x file#/srv/own
                  no such user ...
          . exec#never        skipped by control

        Failures
          x file#/srv/own  (in c.yaml)
                no such user
                ask for another

        1 to create, 1 to change, 1 to remove, 1 to refresh,
        1 failed; 2 stable, 1 skipped, 2 not selected
        ");
        insta::assert_snapshot!(picture(Amount::Quiet, Some(60), true), @"
          ✗ apply#c.yaml
                1 of 3 resources failed
            ✗ file#/srv/own
                  no such user
                  ask for another

        1 to create, 1 to change, 1 to remove, 1 to refresh,
        1 failed; 2 stable, 1 skipped, 2 not selected
        ");
    }
}
