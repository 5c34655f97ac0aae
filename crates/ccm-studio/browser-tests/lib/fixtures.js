// Manifests that tests begin with.

export const WEB = `# A package, its configuration and its service.
data:
  port: 8080

ccm:
  resources:
    - package:
        - nano:
            ensure: present
    - file:
        - defaults: {owner: root, group: root, mode: "0644"}
        - /tmp/ccm-studio-test:
            ensure: directory
        - /tmp/ccm-studio-test/app.conf:
            alias: config
            # the unit reads this once
            content: |
              listen = {{ Data.port }}
            mode: "0640"
            require: ["package#nano"]
    - exec:
        - warm the cache:
            command: /bin/true
            refresh_only: true
            subscribe: ["file#config"]
`;

/** The same with a mode that is none. */
export const WRONG = WEB.replace('"0640"', '"0844"');

/** Files only, so that a plan asks no package manager. */
export const FILES = `ccm:
  resources:
    - file:
        - defaults: {owner: root, group: root, mode: "0644"}
        - /tmp/ccm-studio-test-a:
            content: "one\\n"
        - /tmp/ccm-studio-test-b:
            content: "two\\n"
            require: ["file#/tmp/ccm-studio-test-a"]
        - /tmp/ccm-studio-test-c:
            content: "three\\n"
`;

/** 5,000 resources, 30,000 lines, 1 MB. */
export function large(count = 5000) {
  const parts = [
    '# Many files.\nccm:\n  resources:\n    - file:\n        - defaults: {owner: root, group: root, mode: "0644"}\n',
  ];
  const path = (/** @type {number} */ index) =>
    `/tmp/ccm-large/${Math.floor(index / 10)}/file-${index}.conf`;
  for (let index = 0; index < count; index += 1) {
    const before = index >= 10 ? `            require: ["file#${path(index - 10)}"]\n` : "";
    parts.push(
      `        - ${path(index)}:\n            # number ${index}\n` +
        `            content: |\n              name = "file-${index}"\n              one line more\n${before}`,
    );
  }
  return parts.join("");
}
