//! `kvGet`, `registrations` and `PrometheusFileSD` in all three languages.

use ccm_testkit::nats::lacks_nats;

use crate::bed::Bed;

fn bed() -> Bed {
    let bed = Bed::new();
    bed.ok(["registration", "init"]);
    for (service, address, port, more) in [
        ("web", "10.0.0.9", "80", ["-A", "prometheus.io/scrape=true"]),
        ("web", "10.0.0.10", "80", ["-A", "prometheus.io/scrape=true"]),
        ("db", "::1", "5432", ["-A", "role=<main>"]),
    ] {
        bed.ok([
            "registration",
            "create",
            "--cluster",
            "prod",
            "--service",
            service,
            "--protocol",
            "http",
            "--address",
            address,
            "--port",
            port,
            "--ttl",
            "10m",
            more[0],
            more[1],
        ]);
    }
    bed
}

/// What a placeholder gives, as the content of a file.
fn rendered(bed: &Bed, template: &str) -> String {
    let manifest = format!(
        "ccm: {{resources: [file: [{{\"[DIR]/out\": {{ensure: present, [ME], mode: \"0600\", \
         content: {template:?}}}}}]]}}"
    );
    let ran = bed.apply(&manifest, &[]);
    assert_eq!(ran.code, 0, "{template}: {ran:?}");
    bed.env.read("out")
}

/// The same by a scaffold, in Jet or in Go.
fn scaffolded(bed: &Bed, engine: &str, template: &str) -> String {
    let _ = std::fs::remove_dir_all(bed.env.path("target"));
    bed.env.write("source/out", template);
    let manifest = format!(
        "ccm: {{resources: [scaffold: [{{\"[DIR]/target\": {{ensure: present, source: \
         \"[DIR]/source\", engine: {engine}}}}}]]}}"
    );
    let ran = bed.apply(&manifest, &[]);
    assert_eq!(ran.code, 0, "{template}: {ran:?}");
    bed.env.read("target/out")
}

#[test]
fn registrations_in_all_languages() {
    if lacks_nats() {
        return;
    }
    let bed = bed();
    let addresses = "10.0.0.10:80 10.0.0.9:80 ";
    assert_eq!(
        rendered(
            &bed,
            "{{ join(map(registrations('prod', 'http', 'web', '*'), .Address + ':' + string(.Port) + ' '), '') }}"
        ),
        addresses
    );
    let jet = "[[ range _, e := registrations(\"prod\", \"http\", \"web\", \"*\") ]][[ e.Address ]]:[[ e.Port ]] [[ end ]]";
    assert_eq!(scaffolded(&bed, "jet", jet), addresses);
    assert_eq!(rendered(&bed, &format!("{{{{ jet('{jet}') }}}}")), addresses);
    let go = "{{ range registrations \"prod\" \"http\" \"web\" \"*\" }}{{ .Address }}:{{ .Port }} {{ end }}";
    assert_eq!(scaffolded(&bed, "go", go), addresses);
    // Members by both names; those that are not there; JSON; iteration.
    let json = "{\"cluster\":\"prod\",\"service\":\"db\",\"protocol\":\"http\",\"address\":\"::1\",\
                \"port\":5432,\"priority\":100,\"annotations\":{\"role\":\"<main>\"},\"ttl\":\"10m0s\"}";
    let of = "registrations('prod','','db','')[0]";
    assert_eq!(
        rendered(
            &bed,
            &format!(
                "{{{{ {of}.TTL + {of}.ttl + {of}.Annotations.role + {of}.annotations.role }}}}"
            )
        ),
        "10m0s10m0s<main><main>"
    );
    assert_eq!(
        scaffolded(
            &bed,
            "go",
            "{{ range registrations \"\" \"\" \"db\" \"\" }}{{ . | toRawJson }}{{ end }}"
        ),
        json
    );
    assert_eq!(
        scaffolded(
            &bed,
            "go",
            "{{ range registrations \"\" \"\" \"db\" \"\" }}{{ range $k, $v := . }}{{ $k }} {{ end }}{{ end }}"
        ),
        "cluster service protocol address port priority annotations ttl "
    );
    assert_eq!(
        scaffolded(
            &bed,
            "jet",
            "[[ range _, e := registrations(\"\",\"\",\"db\",\"\") ]][[ range k, v := e ]][[ k ]] [[ end ]][[ e.TTL ]][[ end ]]"
        ),
        "cluster service protocol address port priority annotations ttl 10m0s"
    );
    bed.ok([
        "registration",
        "create",
        "--cluster",
        "c",
        "--service",
        "bare",
        "--protocol",
        "p",
        "--address",
        "1.2.3.4",
        "--ttl",
        "",
    ]);
    assert_eq!(
        rendered(
            &bed,
            "{{ map(registrations('c','p','bare',''), [.Port, .TTL, .Annotations, .ttl]) }}"
        ),
        "[[<nil> <nil> <nil> <nil>]]"
    );
    assert_eq!(
        scaffolded(
            &bed,
            "go",
            "{{ range registrations \"c\" \"\" \"bare\" \"\" }}{{ if .TTL }}yes{{ else }}no{{ end }}{{ if .Annotations }}yes{{ else }}no{{ end }}{{ end }}"
        ),
        "nono"
    );
    // Nothing found is an empty list.
    assert_eq!(rendered(&bed, "{{ len(registrations('none', '', '', '')) }}"), "0");
}

#[test]
fn target_files_for_prometheus_in_all_languages() {
    if lacks_nats() {
        return;
    }
    let bed = bed();
    let wanted = "[\n  {\n    \"labels\": {\n      \"cluster\": \"prod\",\n      \"protocol\": \"http\",\n      \
                  \"service\": \"web\"\n    },\n    \"targets\": [\n      \"10.0.0.10:80\",\n      \
                  \"10.0.0.9:80\"\n    ]\n  }\n]";
    assert_eq!(rendered(&bed, "{{ registrations('*','*','*','*').PrometheusFileSD() }}"), wanted);
    assert_eq!(
        rendered(
            &bed,
            "{{ filter(registrations('','','',''), .Service == 'web').PrometheusFileSD() }}"
        ),
        wanted
    );
    assert_eq!(
        scaffolded(
            &bed,
            "jet",
            "[[ r := registrations(\"*\",\"*\",\"*\",\"*\") ]][[ r.PrometheusFileSD() ]]"
        ),
        wanted
    );
    assert_eq!(
        scaffolded(
            &bed,
            "go",
            "{{ $r := registrations \"*\" \"*\" \"*\" \"*\" }}{{ $r.PrometheusFileSD }}"
        ),
        wanted
    );
    assert_eq!(rendered(&bed, "{{ registrations('none','','','').PrometheusFileSD() }}"), "[]");
    assert_eq!(bed.ok(["registration", "query", "--prometheus"]), format!("{wanted}\n"));
}

#[test]
fn keys_in_all_languages() {
    if lacks_nats() {
        return;
    }
    let bed = Bed::new();
    let mut wire = bed.wire();
    wire.make_bucket("DATA", 1);
    wire.put("DATA", "a/b", b"value <&>\n");
    wire.put("DATA", "empty", b"");
    assert_eq!(rendered(&bed, "{{ kvGet('DATA', 'a/b') }}"), "value <&>\n");
    assert_eq!(rendered(&bed, "[{{ kvGet('DATA', 'empty') }}]"), "[]");
    assert_eq!(scaffolded(&bed, "jet", "[[ kvGet(\"DATA\", \"a/b\") ]]"), "value <&>\n");
    assert_eq!(scaffolded(&bed, "go", "{{ kvGet \"DATA\" \"a/b\" }}"), "value <&>\n");
}

/// One run sees one state, and a value that changes meanwhile is seen by the
/// next run.
#[test]
fn a_run_asks_once() {
    if lacks_nats() {
        return;
    }
    let bed = Bed::new();
    let mut wire = bed.wire();
    wire.make_bucket("DATA", 1);
    wire.put("DATA", "k", b"one");
    let manifest = "ccm:\n  resources:\n    - exec:\n        - \"echo first={{ kvGet('DATA', 'k') }}\": {logoutput: true}\n    \
        - exec:\n        - wait: {command: \"[DIR]/wait\"}\n    \
        - file:\n        - \"[DIR]/out\": {ensure: present, [ME], mode: \"0600\", content: \"{{ kvGet('DATA', 'k') }} {{ kvGet('DATA', 'later') ?? '' }}\"}\n";
    // The second resource waits until the value was replaced.
    bed.env.write(
        "wait",
        "#!/bin/sh\ntouch [DIR]/waiting\nwhile [ ! -e [DIR]/go ]; do sleep 0.05; done\n",
    );
    let mode = <std::fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o700);
    std::fs::set_permissions(bed.env.path("wait"), mode).unwrap();
    bed.env.manifest(manifest);
    let child = bed.env.start();
    ccm_testkit::wait_until("the second resource", || {
        bed.env.path("waiting").exists().then_some(())
    });
    wire.put("DATA", "k", b"two");
    bed.env.write("go", "");
    let ran = crate::bed::Ran::of(&child.wait_with_output().unwrap());
    assert!(ran.out.contains("first=one"), "{ran:?}");
    // The key `later` is missing: that resource fails, and the run went on to it.
    assert!(
        ran.code == 1 && ran.out.contains("no key `later`") || ran.err.contains("no key `later`"),
        "{ran:?}"
    );
    assert_eq!(rendered(&bed, "{{ kvGet('DATA', 'k') }}"), "two");
}

#[test]
fn errors_invalidate_the_manifest_or_fail_the_resource() {
    if lacks_nats() {
        return;
    }
    let bed = Bed::new();
    bed.wire().make_bucket("DATA", 1);
    bed.wire().put("DATA", "latin", b"\xe9");
    let phase_one = |expression: &str| {
        let manifest = format!(
            "ccm: {{resources: [exec: [{{\"touch [DIR]/ran\": {{}}}}, {{\"echo {{{{ {expression} }}}}\": {{}}}}]]}}"
        );
        bed.apply(&manifest, &[])
    };
    let long = "a".repeat(300);
    let long = format!("registrations('', '', '{long}', '')");
    for (expression, words) in [
        ("kvGet('DATA', 'none')", "no key `none` in bucket `DATA`"),
        ("kvGet('NONE', 'k')", "no bucket `NONE`"),
        ("kvGet('DATA', 'latin')", "is not UTF-8"),
        ("kvGet('', 'k')", "a bucket is named by"),
        ("kvGet('DATA', '')", "the key is empty"),
        ("kvGet('DATA', '>')", "is not a key"),
        ("kvGet('a.b', 'k')", "a bucket is named by"),
        ("registrations('', '', '', '')", "no stream `REGISTRATION`"),
        ("registrations('a.b', '', '', '')", "is not a name"),
        ("registrations('>', '', '', '')", "is not a name"),
        ("registrations('', 'a b', '', '')", "is not a name"),
        ("registrations('', '', 'a*', '')", "is not a name"),
        (&long, "a name has at most 255 characters"),
        ("registrations('', '', '', '10.0.0.*')", "is not an IPv4 or IPv6 address"),
        ("registrations('', '', '', 'host')", "is not an IPv4 or IPv6 address"),
        ("[1].PrometheusFileSD()", "is for what `registrations` returns"),
    ] {
        let ran = phase_one(expression);
        assert_eq!(ran.code, 1, "{expression}: {ran:?}");
        assert!(ran.err.contains(words), "{expression}: {ran:?}");
        assert!(!bed.env.path("ran").exists(), "{expression}: nothing runs");
    }
    // Deferred: the resource fails and the run goes on.
    let manifest = "ccm: {resources: [file: [{\"[DIR]/a\": {ensure: present, [ME], mode: \"0600\", content: \"{{ kvGet('DATA', 'none') }}\"}}], exec: [{\"touch [DIR]/ran\": {}}]]}"
        .replace("], exec", "]}, {exec").replace("resources: [file", "resources: [{file").replace("{}}]]}", "{}}]}]}");
    let ran = bed.apply(&manifest, &[]);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(bed.env.path("ran").exists(), "{ran:?}");
    // Control: the same.
    let manifest = "ccm: {resources: [{exec: [{\"true\": {control: {if: \"kvGet('DATA', 'none') == ''\"}}}]}, {exec: [{\"touch [DIR]/ran2\": {}}]}]}";
    let ran = bed.apply(manifest, &[]);
    assert!(ran.code == 1 && bed.env.path("ran2").exists(), "{ran:?}");
    // Hiera's own expressions do not have them.
    bed.env.write("d.yaml", "data: {a: \"{{ kvGet('DATA', 'latin') }}\"}\n");
    let said = bed.fails(["hiera", "parse", "d.yaml"]);
    assert!(said.contains("kvGet"), "{said}");
    // They work in noop.
    bed.wire().put("DATA", "k", b"v");
    let ran = bed
        .apply("ccm: {resources: [exec: [{\"echo {{ kvGet('DATA', 'k') }}\": {}}]]}", &["--noop"]);
    assert!(ran.code == 0 && ran.out.contains("echo v"), "{ran:?}");
}

/// Who uses no network feature reads no context.
#[test]
fn without_network_functions_nothing_is_read() {
    let env = crate::env::TestEnv::new();
    env.write(".config/nats/context/CCM.json", "this is no context");
    env.manifest("ccm: {resources: [exec: [{\"true\": {register_when_stable: [{cluster: c, service: s, protocol: p, address: 1.2.3.4, priority: 1}]}}]]}");
    for args in
        [["apply", "manifest.yaml"], ["validate", "manifest.yaml"], ["plan", "manifest.yaml"]]
    {
        let output = env.run(args);
        assert!(output.status.success() && output.stderr.is_empty(), "{args:?}: {output:?}");
    }
}
