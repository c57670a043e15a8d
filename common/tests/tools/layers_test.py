"""The house of common/tools: who may import whom, and only what the other one offers."""

import ast
import unittest
from pathlib import Path

import tools

ROOT = Path(tools.__file__).parent
# Each package, and those that it may import from. A command is built of all of them.
MAY_IMPORT = {"base": [], "record": ["base"], "course": ["base"], "user_files": ["base"],
              "machine_code": ["base"],
              "measuring": ["base", "record"], "showing": ["base", "record", "user_files"],
              "handout": ["base", "course"], "grading": ["base", "course"]}
MAY_IMPORT["commands"] = list(MAY_IMPORT)


def imported(path: Path) -> list:
    """[(module, name)] of what the file imports of ours."""
    return [(node.module, alias.name) for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.ImportFrom) and node.module.startswith("tools") for alias in node.names]


class Layers(unittest.TestCase):
    def test_packages_import_downwards_and_by_the_face(self):
        for package, below in MAY_IMPORT.items():
            for path in sorted((ROOT / package).glob("*.py")):
                for module, name in imported(path):
                    owner = module.split(".")[1]
                    with self.subTest(file=str(path.relative_to(ROOT)), imports=f"{module}: {name}"):
                        if owner != package:
                            self.assertIn(owner, below)
                            self.assertEqual(module, f"tools.{owner}", "another package is its face")
                            self.assertIn(name, [offered for _, offered in imported(ROOT / owner / "__init__.py")])

    def test_every_package_has_its_place_and_a_sentence(self):
        packages = {path.parent.name for path in ROOT.glob("*/__init__.py")}
        self.assertEqual(packages, set(MAY_IMPORT))
        for package in packages:
            self.assertTrue(ast.get_docstring(ast.parse((ROOT / package / "__init__.py").read_text())), package)

    def test_five_floors(self):
        def floor(package: str) -> int:  # does not end if there is a circle
            return 1 + max(map(floor, MAY_IMPORT[package]), default=0)

        self.assertEqual(floor("commands") + 1, 5)  # and the command line on top


if __name__ == "__main__":
    unittest.main()
