"""What a repository says of itself, in the places where its host and package indexes look: is it one thing, and true?"""

import itertools
import os
import re
import subprocess
import unittest

from tools.base import ROOT, packages
from tools.commands import group_of, spoken
from tools.showing.book import Book, targets

FORMS = sorted((ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml"))
PAGES = ["CHANGELOG.md", "CONTRIBUTING.md", ".github/SECURITY.md", ".github/pull_request_template.md"]


def found(file: str, pattern: str) -> str:
    matched = re.search(pattern, (ROOT / file).read_text(), re.MULTILINE)
    return matched[1] if matched else f"{file} has no {pattern}"


class Repository(unittest.TestCase):
    def test_one_version(self):
        header = (ROOT / "common/capi/flash_attention_workbook.h").read_text()
        version = ".".join(re.findall(r"^#define FAW_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)$", header, re.MULTILINE))
        self.assertRegex(version, r"^\d+\.\d+\.\d+$")
        self.assertEqual(found("CITATION.cff", r"^version: (.*)$"), version)
        self.assertEqual(found("CHANGELOG.md", r"^## (.*)$"), version)

    def test_the_container_has_all_that_would_be_installed(self):
        wanted = [packages.TOOLS, packages.LIBRARIES, packages.RANKS, packages.GRADING, packages.COMPILER_CACHE]
        there = (ROOT / ".devcontainer/Dockerfile").read_text().split()
        self.assertEqual([one.name for one in itertools.chain(*wanted) if one.name not in there], [])

    def test_one_version_of_the_engine(self):
        version = found("common/simt/CMakeLists.txt", r"^project\(simt VERSION ([\d.]+) ")
        for file, pattern in [("pyproject.toml", r'^version = "(.*)"$'),
                              ("package/simt_engine/__init__.py", r'^__version__ = "(.*)"$'),
                              ("package/simt", r'^sys.exit\(main\(PREFIX, "(.*)"\)\)$')]:
            self.assertEqual(found(f"common/simt/{file}", pattern), version, file)

    def test_one_name_of_the_authors_and_one_licence(self):
        authors = found("LICENSE", r"^Copyright \(c\) \d+ (.*)$")
        self.assertEqual(found("CITATION.cff", r"^  - name: (.*)$"), authors)
        for file in ("pyproject.toml", "common/simt/pyproject.toml"):
            self.assertEqual(found(file, r'^authors = \[{ name = "(.*)" }\]$'), authors)
            self.assertEqual(found(file, r'^license = { text = "(.*)" }$'), "MIT")
        self.assertEqual(found("CITATION.cff", r"^license: (.*)$"), "MIT")

    def test_links_lead_somewhere(self):
        for page in PAGES:
            self.assertEqual(Book(ROOT).broken(page), [])
        for package in ("common/python/README.md", "common/simt/package/README.md"):
            self.assertEqual(targets((ROOT / package).read_text()), [], "an index has none of our files")

    def test_commands_that_are_named_are_there(self):
        for file in [*(ROOT / page for page in PAGES), *FORMS]:
            for command, name in re.findall(r"(\./workbook (?:dev )?(\w+))", " ".join(file.read_text().split())):
                self.assertTrue(group_of(name) and command == spoken(name), f"{file.name}: {command}")

    def test_forms_are_what_the_host_reads(self):
        self.assertEqual(len(FORMS), 3)
        for form in FORMS:
            with self.subTest(form=form.name):
                text = form.read_text()
                self.assertEqual(re.findall(r"^(\w+):", text, re.MULTILINE), ["name", "description", "title", "labels", "body"])
                fields = text.partition("\nbody:\n")[2].split("  - type: ")[1:]
                ids = [re.search(r"^(?:input|textarea)\n    id: (\w+)\n    attributes:\n      label: [^\n:]+\n", field)
                       for field in fields]
                self.assertTrue(all(ids), text)
                self.assertEqual(len({one[1] for one in ids}), len(ids))

    def test_a_release_has_its_part_of_the_changes(self):
        """The workflow's own line, asked for the version that the page begins with, and for one that it does not have."""
        line = found(".github/workflows/release.yml", r"- run: (awk .*) > build/notes.md && grep -q \. build/notes.md$")
        self.assertTrue(self.part(line, "v" + found("CHANGELOG.md", r"^## (.*)$")))
        self.assertEqual(self.part(line, "v0.9.9"), "")

    def part(self, line: str, tag: str) -> str:
        return subprocess.run(["sh", "-c", line], cwd=ROOT, env={**os.environ, "GITHUB_REF_NAME": tag}, check=True,
                              capture_output=True, text=True).stdout


if __name__ == "__main__":
    unittest.main()
