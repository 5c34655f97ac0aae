//! `memory`: in bytes, where the kernel counts in KiB.

use std::collections::HashMap;

use govalue::{Map, Value};

use crate::tree::{Tree, name_of, pairs};
use crate::{count, map, percent};

/// Facts that the kernel gives as they are.
const PLAIN: [(&str, &str); 30] = [
    ("writeBack", "Writeback"),
    ("dirty", "Dirty"),
    ("writeBackTmp", "WritebackTmp"),
    ("shared", "Shmem"),
    ("slab", "Slab"),
    ("sreclaimable", "SReclaimable"),
    ("sunreclaim", "SUnreclaim"),
    ("pageTables", "PageTables"),
    ("swapCached", "SwapCached"),
    ("commitLimit", "CommitLimit"),
    ("committedAS", "Committed_AS"),
    ("highTotal", "HighTotal"),
    ("highFree", "HighFree"),
    ("lowTotal", "LowTotal"),
    ("lowFree", "LowFree"),
    ("swapTotal", "SwapTotal"),
    ("swapFree", "SwapFree"),
    ("mapped", "Mapped"),
    ("vmallocTotal", "VmallocTotal"),
    ("vmallocUsed", "VmallocUsed"),
    ("vmallocChunk", "VmallocChunk"),
    ("hugePagesTotal", "HugePages_Total"),
    ("hugePagesFree", "HugePages_Free"),
    ("hugePagesRsvd", "HugePages_Rsvd"),
    ("hugePagesSurp", "HugePages_Surp"),
    ("hugePageSize", "Hugepagesize"),
    ("anonHugePages", "AnonHugePages"),
    ("active", "Active"),
    ("inactive", "Inactive"),
    ("buffers", "Buffers"),
];

pub(crate) fn facts(tree: &Tree<'_>) -> Value {
    let text = |path: &str| tree.text(path).unwrap_or_default();
    let meminfo = text("proc/meminfo");
    let sizes = sizes(&meminfo);
    let swap = map([
        ("info", swap(&sizes, &text("proc/vmstat"), tree.host.page_size())),
        ("devices", swap_devices(&text("proc/swaps"))),
    ]);
    map([("virtual", physical(&sizes)), ("swap", swap)])
}

/// The lines of `/proc/meminfo`, in bytes where they are sizes.
fn sizes(meminfo: &str) -> HashMap<&str, u64> {
    pairs(meminfo)
        .filter_map(|(key, value)| {
            let (number, unit) = value.split_once(' ').unwrap_or((value, ""));
            let number: u64 = number.parse().ok()?;
            Some((key, if unit == "kB" { number.saturating_mul(1024) } else { number }))
        })
        .collect()
}

fn physical(sizes: &HashMap<&str, u64>) -> Value {
    let size = |key: &str| sizes.get(key).copied().unwrap_or(0);
    let (total, free, buffers) = (size("MemTotal"), size("MemFree"), size("Buffers"));
    // Slab memory that can be had back is a cache, too.
    let cached = size("Cached") + size("SReclaimable");
    let spare = free + buffers + cached;
    let available = sizes.get("MemAvailable").copied().unwrap_or(spare);
    let used = total.saturating_sub(spare);
    let mut facts = Map::from_iter([
        ("total", count(total)),
        ("available", count(available)),
        ("used", count(used)),
        ("usedPercent", percent(used, total)),
        ("free", count(free)),
        ("cached", count(cached)),
    ]);
    for (name, key) in PLAIN {
        facts.insert(name, count(size(key)));
    }
    facts.into()
}

/// What was swapped in and out is counted in pages, what was read and written
/// in KiB, faults one by one.
fn swap(sizes: &HashMap<&str, u64>, vmstat: &str, page: u64) -> Value {
    let size = |key: &str| sizes.get(key).copied().unwrap_or(0);
    let (total, free) = (size("SwapTotal"), size("SwapFree"));
    let used = total.saturating_sub(free);
    let counters: HashMap<&str, u64> = vmstat
        .lines()
        .filter_map(|line| line.split_once(' '))
        .filter_map(|(key, value)| Some((key, value.trim().parse().ok()?)))
        .collect();
    let counted =
        |key: &str, unit: u64| count(counters.get(key).copied().unwrap_or(0).saturating_mul(unit));
    map([
        ("total", count(total)),
        ("used", count(used)),
        ("free", count(free)),
        ("usedPercent", percent(used, total)),
        ("sin", counted("pswpin", page)),
        ("sout", counted("pswpout", page)),
        ("pgIn", counted("pgpgin", 1024)),
        ("pgOut", counted("pgpgout", 1024)),
        ("pgFault", counted("pgfault", 1)),
        ("pgMajFault", counted("pgmajfault", 1)),
    ])
}

/// The lines of `/proc/swaps`, below its heading.
fn swap_devices(swaps: &str) -> Value {
    Value::array(swaps.lines().skip(1).filter_map(|line| {
        let fields: Vec<_> = line.split_whitespace().collect();
        let [name, _, size, used, ..] = fields[..] else { return None };
        let (size, used): (u64, u64) = (size.parse().ok()?, used.parse().ok()?);
        Some(map([
            ("name", name_of(name).into()),
            ("usedBytes", count(used.saturating_mul(1024))),
            ("freeBytes", count(size.saturating_sub(used).saturating_mul(1024))),
        ]))
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEMINFO: &str = "\
MemTotal:       16303996 kB
MemFree:         1024000 kB
MemAvailable:    9000000 kB
Buffers:          200000 kB
Cached:          7000000 kB
SwapCached:            0 kB
Active:          5000000 kB
Inactive:        6000000 kB
Active(anon):     123456 kB
Shmem:            300000 kB
Slab:             500000 kB
SReclaimable:     400000 kB
SUnreclaim:       100000 kB
SwapTotal:       2097148 kB
SwapFree:        1048574 kB
HugePages_Total:       4
Hugepagesize:       2048 kB
";

    fn int(value: &Value, key: &str) -> i64 {
        value.get(key).and_then(Value::as_int).unwrap()
    }

    #[test]
    fn physical_memory() {
        let found = physical(&sizes(MEMINFO));
        assert_eq!(int(&found, "total"), 16_303_996 * 1024);
        assert_eq!(int(&found, "available"), 9_000_000 * 1024);
        assert_eq!(int(&found, "cached"), 7_400_000 * 1024);
        let used = 16_303_996 - 1_024_000 - 200_000 - 7_400_000;
        assert_eq!(int(&found, "used"), used * 1024);
        let share = found.get("usedPercent").and_then(Value::as_float).unwrap();
        assert!((share - used as f64 / 16_303_996.0 * 100.0).abs() < 1e-9);
        assert_eq!(int(&found, "active"), 5_000_000 * 1024);
        assert_eq!(int(&found, "shared"), 300_000 * 1024);
        assert_eq!(int(&found, "hugePagesTotal"), 4);
        assert_eq!(int(&found, "hugePageSize"), 2048 * 1024);
        assert_eq!(int(&found, "highTotal"), 0);
    }

    #[test]
    fn kernels_that_do_not_estimate() {
        let text = "MemTotal: 100 kB\nMemFree: 10 kB\nBuffers: 5 kB\nCached: 20 kB\n";
        assert_eq!(int(&physical(&sizes(text)), "available"), 35 * 1024);
    }

    #[test]
    fn swap_and_its_counters() {
        let vmstat =
            "pgpgin 10\npgpgout 20\npswpin 3\npswpout 4\npgfault 500\npgmajfault 6\nbad x\n";
        let found = swap(&sizes(MEMINFO), vmstat, 4096);
        assert_eq!(int(&found, "total"), 2_097_148 * 1024);
        assert_eq!(int(&found, "used"), 1_048_574 * 1024);
        assert_eq!(found.get("usedPercent"), Some(&Value::Float(50.0)));
        assert_eq!((int(&found, "sin"), int(&found, "sout")), (3 * 4096, 4 * 4096));
        assert_eq!((int(&found, "pgIn"), int(&found, "pgOut")), (10 * 1024, 20 * 1024));
        assert_eq!((int(&found, "pgFault"), int(&found, "pgMajFault")), (500, 6));
    }

    #[test]
    fn no_swap_is_not_a_division_by_zero() {
        let found = swap(&sizes("SwapTotal: 0 kB\nSwapFree: 0 kB\n"), "", 4096);
        assert_eq!(found.get("usedPercent"), Some(&Value::Float(0.0)));
    }

    #[test]
    fn devices_of_swap() {
        let text = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n\
                    /dev/dm-1                               partition\t2097148\t1024\t\t-2\n\
                    /swap\\040file                           file\t\t1000\t\t0\t\t-3\n";
        let found = swap_devices(text);
        let [first, second] = found.as_array().unwrap() else { panic!("{found:?}") };
        assert_eq!(first.get("name"), Some(&Value::from("/dev/dm-1")));
        assert_eq!(int(first, "usedBytes"), 1024 * 1024);
        assert_eq!(int(first, "freeBytes"), (2_097_148 - 1024) * 1024);
        assert_eq!(second.get("name"), Some(&Value::from("/swap file")));
        assert_eq!(swap_devices(""), Value::array([]));
        assert_eq!(swap_devices("Filename\nnonsense\n"), Value::array([]));
    }
}
