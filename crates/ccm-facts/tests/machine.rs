//! The facts against what the machine says by other ways.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::unwrap_used,
    reason = "the test asks the machine by itself"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;
use std::time::{Duration, Instant};

use ccm_facts::{Options, gather};
use ccm_host::Host;
use govalue::Value;

fn facts() -> Value {
    let options = Options { directories: Vec::new(), timeout: Duration::from_secs(10) };
    gather(&Host::new(), &options).into()
}

fn at<'a>(facts: &'a Value, path: &str) -> &'a Value {
    path.split('.').fold(facts, |value, key| {
        let found = match key.parse::<usize>() {
            Ok(index) => value.as_array().and_then(|items| items.get(index)),
            Err(_) => value.get(key),
        };
        found.unwrap_or_else(|| panic!("no {key} of {path}"))
    })
}

fn text<'a>(facts: &'a Value, path: &str) -> &'a str {
    at(facts, path).as_str().unwrap_or_else(|| panic!("{path} is no text"))
}

fn int(facts: &Value, path: &str) -> i64 {
    let Value::Int(number) = at(facts, path) else { panic!("{path} is no int") };
    *number
}

fn read(path: &str) -> String {
    std::fs::read_to_string(path).unwrap()
}

/// What a command prints; `None` where it is not installed or fails.
fn run(command: &[&str]) -> Option<String> {
    let output = Command::new(command[0]).args(&command[1..]).env("LC_ALL", "C").output().ok()?;
    output.status.success().then(|| String::from_utf8(output.stdout).unwrap().trim().to_owned())
}

/// The JSON that a command prints; `None` where it cannot.
fn run_json(command: &[&str]) -> Option<serde_json::Value> {
    serde_json::from_str(&run(command)?).ok()
}

#[test]
fn keys_are_those_that_users_know() {
    let facts = facts();
    let keys = |path: &str| {
        let map = at(&facts, path).as_map().unwrap_or_else(|| panic!("{path} is no map"));
        map.keys().filter_map(|key| key.as_str()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(
        keys("host.info"),
        "hostname uptime bootTime procs os platform platformFamily platformVersion kernelVersion \
         kernelArch virtualizationSystem virtualizationRole hostId"
    );
    assert_eq!(
        keys("cpu.info.0"),
        "cpu vendorId family model stepping physicalId coreId cores modelName mhz cacheSize flags \
         microcode"
    );
    assert_eq!(keys("memory"), "virtual swap");
    assert_eq!(
        keys("memory.swap.info"),
        "total used free usedPercent sin sout pgIn pgOut pgFault pgMajFault"
    );
    assert_eq!(keys("partition"), "partitions usage");
    assert_eq!(keys("network"), "interfaces addresses default_ipv4 default_ipv6 primaryIP");
    assert_eq!(keys("user"), "name uid group gid home");
    assert_eq!(keys("network.interfaces.0"), "index mtu name hardwareAddr flags addrs");
}

#[test]
fn the_system_is_the_one_that_runs() {
    let facts = facts();
    for (option, fact) in [("-n", "hostname"), ("-r", "kernelVersion"), ("-m", "kernelArch")] {
        if let Some(said) = run(&["uname", option]) {
            assert_eq!(text(&facts, &format!("host.info.{fact}")), said);
        }
    }
    let release = std::fs::read_to_string("/etc/os-release").unwrap_or_default();
    let said = |key: &str| {
        let line = release.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
        line.unwrap_or_default().trim_matches('"').to_owned()
    };
    if matches!(said("ID").as_str(), "debian" | "ubuntu" | "fedora" | "alpine" | "arch") {
        assert_eq!(text(&facts, "host.info.platform"), said("ID"));
        assert!(text(&facts, "host.info.platformVersion").starts_with(&said("VERSION_ID")));
    }
    let uptime: f64 = read("/proc/uptime").split(' ').next().unwrap().parse().unwrap();
    assert!((int(&facts, "host.info.uptime") - uptime as i64).abs() <= 10);
    let stat = read("/proc/stat");
    let boot = stat.lines().find_map(|line| line.strip_prefix("btime ")).unwrap();
    assert_eq!(int(&facts, "host.info.bootTime"), boot.parse::<i64>().unwrap());
    assert!(int(&facts, "host.info.procs") > 0);
}

#[test]
fn the_user_is_the_one_that_runs_ccm() {
    let facts = facts();
    for (option, fact) in [("-un", "name"), ("-gn", "group")] {
        assert_eq!(Some(text(&facts, &format!("user.{fact}"))), run(&["id", option]).as_deref());
    }
    for (option, fact) in [("-u", "uid"), ("-g", "gid")] {
        let said = run(&["id", option]).unwrap();
        assert_eq!(int(&facts, &format!("user.{fact}")).to_string(), said);
    }
    let passwd = read("/etc/passwd");
    let entry =
        passwd.lines().find(|line| line.starts_with(&format!("{}:", text(&facts, "user.name"))));
    let home = entry.and_then(|line| line.split(':').nth(5)).unwrap_or_default();
    assert_eq!(text(&facts, "user.home"), home);
}

#[test]
fn every_processor_is_there() {
    let facts = facts();
    let cpuinfo = read("/proc/cpuinfo");
    let processors = cpuinfo.lines().filter(|line| line.starts_with("processor\t")).count();
    assert_eq!(at(&facts, "cpu.info").as_array().unwrap().len(), processors);
    assert!(matches!(at(&facts, "cpu.info.0.mhz"), Value::Float(_)));
    assert_eq!(int(&facts, "cpu.info.0.cpu"), 0);
}

#[test]
fn memory_is_what_the_kernel_says() {
    let facts = facts();
    let meminfo = read("/proc/meminfo");
    let said = |wanted: &str| {
        let line = meminfo.lines().find_map(|line| line.strip_prefix(wanted)?.strip_prefix(':'));
        let number = line.unwrap().trim().trim_end_matches(" kB");
        number.parse::<i64>().unwrap() * 1024
    };
    assert_eq!(int(&facts, "memory.virtual.total"), said("MemTotal"));
    assert_eq!(int(&facts, "memory.swap.info.total"), said("SwapTotal"));
    // These change all the time.
    let near = |path: &str, key: &str| {
        let apart = (int(&facts, path) - said(key)).abs();
        assert!(apart < said("MemTotal") / 5, "{path}: {apart} apart");
    };
    near("memory.virtual.free", "MemFree");
    near("memory.virtual.available", "MemAvailable");
    let Value::Float(share) = at(&facts, "memory.virtual.usedPercent") else { panic!() };
    assert!((0.0..=100.0).contains(share));
    let swaps = read("/proc/swaps").lines().count().saturating_sub(1);
    assert_eq!(at(&facts, "memory.swap.devices").as_array().unwrap().len(), swaps);
}

#[test]
fn file_systems_are_those_of_df() {
    let facts = facts();
    let usage = at(&facts, "partition.usage").as_array().unwrap();
    let partitions = at(&facts, "partition.partitions").as_array().unwrap();
    let mounts = read("/proc/self/mounts");
    for partition in partitions {
        let [device, place, kind] = ["device", "mountpoint", "fstype"]
            .map(|key| text(partition, key).replace(' ', "\\040"));
        let line = format!("{device} {place} {kind} ");
        assert!(mounts.lines().any(|mount| mount.starts_with(&line)), "{line}");
        assert!(at(partition, "opts").as_array().is_some());
    }
    for found in usage {
        let path = text(found, "path");
        let said = run(&["df", "-B1", "--output=size,used,avail,itotal", path]).unwrap();
        let said: Vec<i64> =
            said.lines().nth(1).unwrap().split_whitespace().map(|n| n.parse().unwrap()).collect();
        assert_eq!(int(found, "total"), said[0], "{path}");
        assert_eq!(int(found, "inodesTotal"), said[3], "{path}");
        for (key, said) in [("used", said[1]), ("free", said[2])] {
            let apart = (int(found, key) - said).abs();
            assert!(apart <= int(found, "total") / 5, "{path} {key}: {apart} apart");
        }
        assert!(matches!(at(found, "usedPercent"), Value::Float(_)));
        assert!(matches!(at(found, "inodesUsedPercent"), Value::Float(_)));
    }
}

#[test]
fn interfaces_are_those_of_ip() {
    if ccm_testkit::lacks_program("ip") {
        return;
    }
    let said = run_json(&["ip", "-j", "addr"]).unwrap();
    let facts = facts();
    let found = at(&facts, "network.interfaces").as_array().unwrap();
    let said = said.as_array().unwrap();
    assert_eq!(found.len(), said.len());
    for said in said {
        let name = said["ifname"].as_str().unwrap();
        let found = found.iter().find(|found| text(found, "name") == name).unwrap();
        assert_eq!(int(found, "index"), said["ifindex"].as_i64().unwrap(), "{name}");
        assert_eq!(int(found, "mtu"), said["mtu"].as_i64().unwrap(), "{name}");
        if said["link_type"] == "ether" {
            assert_eq!(text(found, "hardwareAddr"), said["address"].as_str().unwrap(), "{name}");
        }
        let flags: BTreeSet<_> =
            at(found, "flags").as_array().unwrap().iter().filter_map(Value::as_str).collect();
        for (flag, word) in [("UP", "up"), ("LOOPBACK", "loopback"), ("MULTICAST", "multicast")] {
            let wanted = said["flags"].as_array().unwrap().iter().any(|said| said == flag);
            assert_eq!(flags.contains(word), wanted, "{name} {word}");
        }
        let wanted: BTreeSet<_> = said["addr_info"]
            .as_array()
            .unwrap()
            .iter()
            .map(|info| format!("{}/{}", info["local"].as_str().unwrap(), info["prefixlen"]))
            .collect();
        let addresses = at(found, "addrs").as_array().unwrap();
        let addresses: BTreeSet<_> =
            addresses.iter().map(|address| text(address, "addr").to_owned()).collect();
        assert_eq!(addresses, wanted, "{name}");
    }
}

#[test]
fn default_addresses_are_those_that_routes_lead_out_by() {
    if ccm_testkit::lacks_program("ip") {
        return;
    }
    let facts = facts();
    let mut found = BTreeMap::new();
    // Documentation addresses: only the route to them is asked for.
    for (option, beyond, fact) in [
        ("-4", "203.0.113.1", "network.default_ipv4"),
        ("-6", "2001:db8::1", "network.default_ipv6"),
    ] {
        let routes = run_json(&["ip", "-j", option, "route", "show", "default"]);
        // Without any route some versions print nothing at all.
        let routes = routes.unwrap_or_default();
        let address = text(&facts, fact);
        found.insert(option, address.to_owned());
        if routes.as_array().is_none_or(Vec::is_empty) {
            assert_eq!(address, "");
            continue;
        }
        if let Some(said) = run_json(&["ip", "-j", option, "route", "get", beyond]) {
            assert_eq!(said[0]["prefsrc"].as_str(), Some(address), "{fact}");
        }
    }
    let primary = if found["-4"].is_empty() { &found["-6"] } else { &found["-4"] };
    assert_eq!(text(&facts, "network.primaryIP"), primary);
    let defaults: Vec<_> = at(&facts, "network.addresses")
        .as_array()
        .unwrap()
        .iter()
        .filter(|address| at(address, "default") == &Value::Bool(true))
        .map(|address| (text(address, "address"), at(address, "ipv4").clone()))
        .collect();
    for (option, address) in found.iter().filter(|(_, address)| !address.is_empty()) {
        let ipv4 = Value::Bool(*option == "-4");
        assert!(defaults.contains(&(address.as_str(), ipv4)), "{address} in {defaults:?}");
    }
}

#[test]
fn gathering_takes_no_time_worth_waiting_for() {
    let start = Instant::now();
    facts();
    assert!(start.elapsed() < Duration::from_secs(2), "{:?}", start.elapsed());
}

#[test]
fn facts_can_be_written_as_json() {
    let text = govalue::json::encode(&facts(), govalue::json::Options::default()).unwrap();
    let read: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(read["host"]["info"]["os"], "linux");
}
