//! `cpu`: one entry for each logical processor.

use govalue::Value;

use crate::map;
use crate::tree::{Tree, pairs};

#[derive(Clone, Debug, Default, PartialEq)]
struct Processor {
    number: i64,
    vendor: String,
    family: String,
    model: String,
    stepping: i64,
    package: String,
    core: String,
    name: String,
    mhz: f64,
    cache: i64,
    flags: Vec<String>,
    microcode: String,
}

pub(crate) fn facts(tree: &Tree<'_>) -> Value {
    let mut processors = parse(&tree.text("proc/cpuinfo").unwrap_or_default());
    for processor in &mut processors {
        complete(processor, tree);
    }
    map([("info", Value::array(processors.into_iter().map(value)))])
}

/// Adds what `/proc/cpuinfo` leaves out on some architectures, and the speed
/// that the processor can reach instead of the one it happens to have.
fn complete(processor: &mut Processor, tree: &Tree<'_>) {
    let directory = format!("sys/devices/system/cpu/cpu{}", processor.number);
    let read = |name: &str| tree.line(format!("{directory}/{name}"));
    let most = read("cpufreq/cpuinfo_max_freq").and_then(|text| text.parse::<f64>().ok());
    if let Some(khz) = most {
        processor.mhz = khz / 1000.0;
    }
    if processor.core.is_empty() {
        processor.core = read("topology/core_id").unwrap_or_default();
    }
    if processor.package.is_empty() {
        processor.package = read("topology/physical_package_id").unwrap_or_default();
    }
}

fn value(processor: Processor) -> Value {
    map([
        ("cpu", processor.number.into()),
        ("vendorId", processor.vendor.into()),
        ("family", processor.family.into()),
        ("model", processor.model.into()),
        ("stepping", processor.stepping.into()),
        ("physicalId", processor.package.into()),
        ("coreId", processor.core.into()),
        // Each entry is one logical processor, so that the sum is their number.
        ("cores", 1.into()),
        ("modelName", processor.name.into()),
        ("mhz", processor.mhz.into()),
        ("cacheSize", processor.cache.into()),
        ("flags", Value::array(processor.flags.into_iter().map(Value::from))),
        ("microcode", processor.microcode.into()),
    ])
}

fn parse(text: &str) -> Vec<Processor> {
    let mut processors: Vec<Processor> = Vec::new();
    // s390x and others describe what all processors share before the first.
    let mut shared = Processor::default();
    for (key, value) in pairs(text) {
        if key == "processor" {
            // ARM kernels of old put a name here, in a line of its own.
            if let Ok(number) = value.parse() {
                processors.push(Processor { number, ..shared.clone() });
            } else {
                value.clone_into(&mut shared.name);
            }
            continue;
        }
        let into = processors.last_mut().unwrap_or(&mut shared);
        read(into, key, value);
    }
    processors
}

fn read(processor: &mut Processor, key: &str, value: &str) {
    let text = || value.to_owned();
    match key {
        "vendor_id" | "vendorId" | "mvendorid" => processor.vendor = text(),
        "CPU implementer" => processor.vendor = implementer(value).map_or_else(text, str::to_owned),
        "cpu family" | "CPU architecture" => processor.family = text(),
        "model" | "CPU part" => processor.model = text(),
        "model name" | "Model Name" | "cpu" | "cpu model" | "uarch" => processor.name = text(),
        "stepping" | "CPU revision" | "revision" => {
            // POWER writes `2.2 (pvr 004e 1202)`.
            let number = value.split([' ', '.']).next().unwrap_or_default();
            processor.stepping = number.parse().unwrap_or_default();
        }
        "cpu MHz" | "CPU MHz" | "clock" | "cpu MHz dynamic" => {
            let number = value.trim_end_matches("MHz").trim();
            processor.mhz = number.parse().unwrap_or_default();
        }
        "cache size" => {
            let number = value.split(' ').next().unwrap_or_default();
            processor.cache = number.parse().unwrap_or_default();
        }
        "physical id" => processor.package = text(),
        "core id" => processor.core = text(),
        "microcode" => processor.microcode = text(),
        "flags" | "Features" | "features" | "isa" => {
            processor.flags = value.split([' ', ',']).map(str::to_owned).collect();
            processor.flags.retain(|flag| !flag.is_empty());
        }
        _ => {}
    }
}

/// Who made an ARM core.
fn implementer(code: &str) -> Option<&'static str> {
    Some(match code {
        "0x41" => "ARM",
        "0x42" => "Broadcom",
        "0x43" => "Cavium",
        "0x46" => "Fujitsu",
        "0x48" => "HiSilicon",
        "0x4e" => "NVIDIA",
        "0x50" => "APM",
        "0x51" => "Qualcomm",
        "0x53" => "Samsung",
        "0x56" => "Marvell",
        "0x61" => "Apple",
        "0x69" => "Intel",
        "0x6d" => "Microsoft",
        "0x70" => "Phytium",
        "0xc0" => "Ampere",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use ccm_host::Host;

    use super::*;
    use crate::tree::planted;

    const X86: &str = "\
processor\t: 0
vendor_id\t: AuthenticAMD
cpu family\t: 25
model\t\t: 1
model name\t: AMD EPYC
stepping\t: 1
microcode\t: 0x1000065
cpu MHz\t\t: 2445.432
cache size\t: 512 KB
physical id\t: 0
core id\t\t: 0
cpu cores\t: 2
flags\t\t: fpu vme de
power management:

processor\t: 1
vendor_id\t: AuthenticAMD
model name\t: AMD EPYC
core id\t\t: 1
flags\t\t: fpu
";

    #[test]
    fn x86() {
        let found = parse(X86);
        assert_eq!(found.len(), 2);
        let wanted = Processor {
            number: 0,
            vendor: "AuthenticAMD".to_owned(),
            family: "25".to_owned(),
            model: "1".to_owned(),
            stepping: 1,
            package: "0".to_owned(),
            core: "0".to_owned(),
            name: "AMD EPYC".to_owned(),
            mhz: 2445.432,
            cache: 512,
            flags: ["fpu", "vme", "de"].map(str::to_owned).to_vec(),
            microcode: "0x1000065".to_owned(),
        };
        assert_eq!(found[0], wanted);
        assert_eq!((found[1].number, found[1].core.as_str(), found[1].cache), (1, "1", 0));
    }

    #[test]
    fn arm() {
        let text = "processor\t: 0\nBogoMIPS\t: 243.75\nFeatures\t: fp asimd\n\
                    CPU implementer\t: 0x41\nCPU architecture: 8\nCPU variant\t: 0x3\n\
                    CPU part\t: 0xd0c\nCPU revision\t: 1\n\nHardware\t: BCM2835\n";
        let found = parse(text);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].vendor.as_str(), found[0].model.as_str()), ("ARM", "0xd0c"));
        assert_eq!((found[0].family.as_str(), found[0].stepping), ("8", 1));
        assert_eq!(found[0].flags, ["fp", "asimd"]);
    }

    #[test]
    fn power() {
        let text = "processor\t: 0\ncpu\t\t: POWER9, altivec supported\n\
                    clock\t\t: 3800.000000MHz\nrevision\t: 2.2 (pvr 004e 1202)\n";
        let found = parse(text);
        assert_eq!(found[0].name, "POWER9, altivec supported");
        assert_eq!((found[0].mhz, found[0].stepping), (3800.0, 2));
    }

    #[test]
    fn nonsense_is_nothing() {
        assert_eq!(parse(""), []);
        assert_eq!(parse("no colon\n: \nflags: x\nprocessor : many\n"), []);
        assert_eq!(parse("processor: 0\nstepping: unknown\ncpu MHz: ?\n")[0].stepping, 0);
    }

    #[test]
    fn the_tree_completes_it() {
        let dir = planted(&[
            ("proc/cpuinfo", "processor : 3\ncpu MHz : 800.0\n"),
            ("sys/devices/system/cpu/cpu3/cpufreq/cpuinfo_max_freq", "3500000\n"),
            ("sys/devices/system/cpu/cpu3/topology/core_id", "1\n"),
            ("sys/devices/system/cpu/cpu3/topology/physical_package_id", "0\n"),
        ]);
        let facts = facts(&Tree::at(&Host::new(), dir.path()));
        let first = &facts.get("info").unwrap().as_array().unwrap()[0];
        assert_eq!(first.get("cpu"), Some(&Value::Int(3)));
        assert_eq!(first.get("mhz"), Some(&Value::Float(3500.0)));
        assert_eq!(first.get("coreId"), Some(&Value::from("1")));
        assert_eq!(first.get("physicalId"), Some(&Value::from("0")));
        assert_eq!(first.get("cores"), Some(&Value::Int(1)));
    }
}
