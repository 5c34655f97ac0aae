// Manifests to begin with. The browser tests check that each is valid.

export const EXAMPLES = [
  {
    path: "motd.yaml",
    title: "One file",
    about: "A message of the day with the machine's own name in it",
    text: `# One file, with a value of this machine in its content.
ccm:
  resources:
    - file:
        - /etc/motd:
            content: |
              Welcome to {{ Facts.host.info.hostname }}.
              Changes to this machine belong into its manifest.
            owner: root
            group: root
            mode: "0644"
`,
  },
  {
    path: "service.yaml",
    title: "A package, its configuration, its service",
    about: "The service restarts when the package or the file changes, and only then",
    text: `# A package, its configuration and its service. The service restarts when
# either of the other two has changed, and only then.
data:
  port: 8080

ccm:
  resources:
    - package:
        - nginx:
            ensure: present
    - file:
        - defaults: {owner: root, group: root, mode: "0644"}
        - /etc/nginx/conf.d/site.conf:
            alias: config
            content: |
              server {
                listen {{ Data.port }};
                root /var/www/html;
              }
            require: ["package#nginx"]
    - service:
        - nginx:
            ensure: running
            enable: true
            subscribe: ["package#nginx", "file#config"]
`,
  },
  {
    path: "roles.yaml",
    title: "Data for each kind of machine",
    about: "A hierarchy chooses values by facts; one manifest serves many machines",
    text: `# One manifest for many machines: what differs is data. The entries of the
# hierarchy are tried in order; those whose facts are not set do not match.
data:
  greeting: Hello
  packages: {editor: vim}

hierarchy:
  order: ["os:{{ Facts.host.info.platformFamily }}", "role:{{ Facts.role }}"]
  merge: deep

overrides:
  os:rhel: {packages: {editor: vim-enhanced}}
  role:web: {greeting: Welcome to a web server}

ccm:
  resources:
    - package:
        - "{{ Data.packages.editor }}":
            ensure: present
    - file:
        - /etc/motd:
            content: |
              {{ Data.greeting }}
            owner: root
            group: root
            mode: "0644"
    - exec:
        - note the time of the first run:
            command: /usr/bin/touch /var/tmp/first-run
            creates: /var/tmp/first-run
`,
  },
];
