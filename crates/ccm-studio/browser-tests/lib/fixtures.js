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

/** 5,000 resources, 30,000 lines, about 1 MB. */
export function large(count = 5000) {
  const parts = ["# Many files.\nccm:\n  resources:\n    - file:\n        - defaults: {owner: root, group: root, mode: \"0644\"}\n"];
  for (let index = 0; index < count; index += 1) {
    const before = index >= 10 ? `            require: ["file#/tmp/ccm-large/dir-${Math.floor(index / 10) - 1}/file-${index - 10}.conf"]\n` : "";
    parts.push(`        - /tmp/ccm-large/dir-${Math.floor(index / 10)}/file-${index}.conf:\n            # file number ${index}, with a comment of some length so that lines are as long as in life\n            content: |\n              name = "file-${index}"\n              number = ${index} of many, and a little more text to fill it\n${before}`);
  }
  return parts.join("");
}
