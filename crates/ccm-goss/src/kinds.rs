//! The kinds of rules with their attributes: plain data that the reader of
//! rules, the schema and the documentation share.

/// A kind of rule, with its attributes.
#[derive(Debug)]
pub struct RuleKind {
    /// Its name in rules.
    pub name: &'static str,
    /// Its name in results.
    pub label: &'static str,
    /// The attribute that names the thing in place of the entry's key.
    pub subject: Option<&'static str>,
    /// The tests; if the first one fails, the others are skipped.
    pub tests: &'static [Attribute],
    /// Whether there is a first test: it must be there, and the others are
    /// skipped if it fails or finds `false`.
    pub has_first: bool,
    /// How to ask.
    pub settings: &'static [Setting],
    /// Notes for the documentation.
    pub notes: &'static str,
    pub(crate) id: Id,
}

/// Which kind it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Id {
    File,
    Package,
    Service,
    Process,
    Port,
    Command,
    Http,
    Addr,
    Dns,
    User,
    Group,
    Interface,
    Mount,
    KernelParam,
    Matching,
}

/// An attribute that is compared.
#[derive(Clone, Copy, Debug)]
pub struct Attribute {
    /// Its name in rules and results.
    pub name: &'static str,
    /// Another name in rules.
    pub alias: Option<&'static str>,
    /// Type of the value on the machine.
    pub value: ValueType,
}

/// The type of a tested value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueType {
    /// `true` or `false`.
    Boolean,
    /// A number.
    Number,
    /// A string.
    Text,
    /// A list of strings.
    List,
    /// Text of many lines.
    Lines,
    /// Anything.
    Any,
}

/// An attribute that says how to ask.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// Its name in rules.
    pub name: &'static str,
    /// Type of the setting.
    pub value: SettingType,
}

/// The type of a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingType {
    /// A string.
    Text,
    /// `true` or `false`.
    Boolean,
    /// Milliseconds, and how many there are by default.
    Milliseconds(u32),
    /// A list of strings.
    Texts,
    /// Anything.
    Any,
}

/// The settings of every kind.
pub(crate) const COMMON: [Setting; 3] = [
    setting("skip", SettingType::Boolean),
    setting("title", SettingType::Text),
    setting("meta", SettingType::Any),
];

/// Every kind of rule.
pub static KINDS: &[RuleKind] = &[
    RuleKind {
        id: Id::File,
        name: "file",
        label: "File",
        subject: Some("path"),
        has_first: true,
        tests: &[
            test("exists", ValueType::Boolean),
            test("mode", ValueType::Text),
            test("owner", ValueType::Text),
            test("uid", ValueType::Number),
            test("group", ValueType::Text),
            test("gid", ValueType::Number),
            test("linked-to", ValueType::Text),
            test("filetype", ValueType::Text),
            Attribute { name: "contents", alias: Some("contains"), value: ValueType::Lines },
            test("size", ValueType::Number),
            test("md5", ValueType::Text),
            test("sha256", ValueType::Text),
            test("sha512", ValueType::Text),
        ],
        settings: &[],
        notes: "Symlinks are not followed, except by `contents` and the checksums. `mode` is four \
                octal digits. `filetype` is `file`, `directory`, `symlink`, `socket`, `pipe`, \
                `character-device` or `block-device`. `~` and `~user` are home directories. Only \
                a list of patterns reads a file above 64 MiB",
    },
    RuleKind {
        id: Id::Package,
        name: "package",
        label: "Package",
        subject: Some("name"),
        has_first: true,
        tests: &[test("installed", ValueType::Boolean), test("versions", ValueType::List)],
        settings: &[],
        notes: "From the database of dpkg or rpm. Versions of rpm have their release, and their \
                epoch if there is one",
    },
    RuleKind {
        id: Id::Service,
        name: "service",
        label: "Service",
        subject: Some("name"),
        has_first: false,
        tests: &[test("enabled", ValueType::Boolean), test("running", ValueType::Boolean)],
        settings: &[],
        notes: "From systemd. At least one of the two is required",
    },
    RuleKind {
        id: Id::Process,
        name: "process",
        label: "Process",
        subject: Some("comm"),
        has_first: true,
        tests: &[test("running", ValueType::Boolean)],
        settings: &[],
        notes: "The command name of any process, of which the kernel keeps 15 bytes",
    },
    RuleKind {
        id: Id::Port,
        name: "port",
        label: "Port",
        subject: Some("port"),
        has_first: true,
        tests: &[test("listening", ValueType::Boolean), test("ip", ValueType::List)],
        settings: &[],
        notes: "`tcp:`, `tcp6:`, `udp:` or `udp6:` and a number; without a prefix `tcp:`. A \
                socket on `::` is `tcp6`",
    },
    RuleKind {
        id: Id::Command,
        name: "command",
        label: "Command",
        subject: Some("exec"),
        has_first: true,
        tests: &[
            test("exit-status", ValueType::Number),
            test("stdout", ValueType::Lines),
            test("stderr", ValueType::Lines),
        ],
        settings: &[setting("timeout", SettingType::Milliseconds(10_000))],
        notes: "Run by `sh -c` in `/`. After `timeout`, ccm terminates the command and its child \
                processes. A wrong exit status does not skip the other tests",
    },
    RuleKind {
        id: Id::Http,
        name: "http",
        label: "HTTP",
        subject: Some("url"),
        has_first: true,
        tests: &[
            test("status", ValueType::Number),
            test("headers", ValueType::Lines),
            test("body", ValueType::Lines),
        ],
        settings: &[
            setting("method", SettingType::Text),
            setting("timeout", SettingType::Milliseconds(5_000)),
            setting("allow-insecure", SettingType::Boolean),
            setting("no-follow-redirects", SettingType::Boolean),
            setting("request-headers", SettingType::Texts),
            setting("request-body", SettingType::Text),
            setting("username", SettingType::Text),
            setting("password", SettingType::Text),
            setting("ca-file", SettingType::Text),
            setting("cert-file", SettingType::Text),
            setting("key-file", SettingType::Text),
            setting("proxy", SettingType::Text),
        ],
        notes: "`headers` are sorted lines such as `Content-Type: text/html`. ccm reads at most \
                16 MiB of a body",
    },
    RuleKind {
        id: Id::Addr,
        name: "addr",
        label: "Addr",
        subject: Some("address"),
        has_first: true,
        tests: &[test("reachable", ValueType::Boolean)],
        settings: &[
            setting("timeout", SettingType::Milliseconds(500)),
            setting("local-address", SettingType::Text),
        ],
        notes: "`tcp://HOST:PORT` or `udp://HOST:PORT`. A UDP address is reachable if the machine \
                has a route to it",
    },
    RuleKind {
        id: Id::Dns,
        name: "dns",
        label: "DNS",
        subject: Some("resolve"),
        has_first: true,
        tests: &[test("resolvable", ValueType::Boolean), test("addrs", ValueType::List)],
        settings: &[
            setting("server", SettingType::Text),
            setting("timeout", SettingType::Milliseconds(500)),
        ],
        notes: "By the resolver of the machine. With `server` (`ADDRESS` or `ADDRESS:PORT`) also \
                `TYPE:name`, where the type is `A`, `AAAA`, `CNAME`, `MX`, `NS`, `PTR`, `SRV`, \
                `TXT` or `CAA`. Answers are sorted, names in them end with a dot",
    },
    RuleKind {
        id: Id::User,
        name: "user",
        label: "User",
        subject: Some("username"),
        has_first: true,
        tests: &[
            test("exists", ValueType::Boolean),
            test("uid", ValueType::Number),
            test("gid", ValueType::Number),
            test("groups", ValueType::List),
            test("home", ValueType::Text),
            test("shell", ValueType::Text),
        ],
        settings: &[],
        notes: "From the user database of the machine. `groups` are sorted",
    },
    RuleKind {
        id: Id::Group,
        name: "group",
        label: "Group",
        subject: Some("groupname"),
        has_first: true,
        tests: &[test("exists", ValueType::Boolean), test("gid", ValueType::Number)],
        settings: &[],
        notes: "",
    },
    RuleKind {
        id: Id::Interface,
        name: "interface",
        label: "Interface",
        subject: Some("name"),
        has_first: true,
        tests: &[
            test("exists", ValueType::Boolean),
            test("addrs", ValueType::List),
            test("mtu", ValueType::Number),
        ],
        settings: &[],
        notes: "`addrs` have a prefix length: `192.0.2.7/24`",
    },
    RuleKind {
        id: Id::Mount,
        name: "mount",
        label: "Mount",
        subject: Some("mountpoint"),
        has_first: true,
        tests: &[
            test("exists", ValueType::Boolean),
            test("opts", ValueType::List),
            test("vfs-opts", ValueType::List),
            test("source", ValueType::Text),
            test("filesystem", ValueType::Text),
            test("usage", ValueType::Number),
        ],
        settings: &[setting("timeout", SettingType::Milliseconds(1_000))],
        notes: "`opts` are those of the mount, `vfs-opts` those of the file system. `usage` is \
                the used share in whole percent; `timeout` limits how long ccm waits for the \
                file system",
    },
    RuleKind {
        id: Id::KernelParam,
        name: "kernel-param",
        label: "KernelParam",
        subject: Some("name"),
        has_first: true,
        tests: &[test("value", ValueType::Text)],
        settings: &[],
        notes: "The file below `/proc/sys` with this name, dots as slashes",
    },
    RuleKind {
        id: Id::Matching,
        name: "matching",
        label: "Matching",
        subject: None,
        has_first: true,
        tests: &[test("matches", ValueType::Any)],
        settings: &[
            setting("content", SettingType::Any),
            setting("as-reader", SettingType::Boolean),
        ],
        notes: "Compares `content` itself, for example the result of a placeholder. With \
                `as-reader: true` it is text of many lines",
    },
];

const fn test(name: &'static str, value: ValueType) -> Attribute {
    Attribute { name, alias: None, value }
}

const fn setting(name: &'static str, value: SettingType) -> Setting {
    Setting { name, value }
}

impl RuleKind {
    /// The attribute that is compared under this name.
    pub(crate) fn test(&self, name: &str) -> Option<&'static Attribute> {
        self.tests.iter().find(|test| test.name == name || test.alias == Some(name))
    }

    /// The setting of this name.
    pub(crate) fn setting(&self, name: &str) -> Option<&'static Setting> {
        self.settings.iter().chain(&COMMON).find(|setting| setting.name == name)
    }

    /// The names of all attributes.
    pub(crate) fn names(&self) -> impl Iterator<Item = &'static str> {
        let tests = self.tests.iter().flat_map(|test| std::iter::once(test.name).chain(test.alias));
        let settings = self.settings.iter().chain(&COMMON).map(|setting| setting.name);
        tests.chain(settings).chain(self.subject)
    }
}

/// The kind of this name.
pub(crate) fn find(name: &str) -> Option<&'static RuleKind> {
    KINDS.iter().find(|kind| kind.name == name)
}
