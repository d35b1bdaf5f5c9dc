"""Writes a Maven repository with the AAR of a package, as Gradle reads it.

    GROUP/NAME/maven-metadata.xml            the versions
    GROUP/NAME/VERSION/NAME-VERSION.aar      classes, native libraries and, if asked for, models
    GROUP/NAME/VERSION/NAME-VERSION.pom      what it needs
    GROUP/NAME/VERSION/NAME-VERSION-sources.jar

Each file has its checksums next to it. The layouts: maven.apache.org/repositories/layout.html and
developer.android.com/studio/projects/android-library.
"""

from __future__ import annotations

import re
import zipfile
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree
from xml.sax.saxutils import escape

from . import gradle, kotlin
from .archive import files_below, write_checksums, write_zip

_METADATA = "META-INF/com/android/build/gradle/aar-metadata.properties"
_POM = "http://maven.apache.org/POM/4.0.0"
_ALLOWED = re.compile(r"[A-Za-z0-9_.-]+")


@dataclass(frozen=True, slots=True)
class Coordinates:
    """What an app's build names an artefact by."""

    group: str
    name: str
    version: str

    def folder(self, repository: Path) -> Path:
        """Return the artefact's folder, which has one for each version."""
        return repository.joinpath(*self.group.split("."), self.name)

    def check(self) -> None:
        """Raise SystemExit if a part has other characters than Maven allows."""
        for part in (self.group, self.name, self.version):
            if not _ALLOWED.fullmatch(part):
                raise SystemExit(f"{part!r} is no Maven name: letters, digits, '.', '_' and '-'")


def write_aar(path: Path, package: Path, classes: Path, *, assets: bool) -> None:
    """Write the archive of an Android library.

    Args:
        path: the archive.
        package: the folder that `wherry package` wrote.
        classes: the jar of the library's classes.
        assets: whether it has the models' weights; else the app downloads them.
    """
    android = package / "android"
    files: dict[str, Path | bytes] = {
        "AndroidManifest.xml": _manifest(android),
        "classes.jar": _plain(classes),
        "proguard.txt": android / "consumer-rules.pro",
        "R.txt": b"",
        _METADATA: _aar_metadata(),
        **files_below(package / "jniLibs", "jni/"),
    }
    if assets:
        files |= files_below(package / "assets", "assets/")
    write_zip(path, files)


def write_artefact(
    repository: Path, at: Coordinates, package: Path, classes: Path, *, assets: bool
) -> Path:
    """Add a package to a repository; return the folder of its version."""
    folder = at.folder(repository) / at.version
    folder.mkdir(parents=True, exist_ok=True)
    stem = f"{at.name}-{at.version}"
    aar, pom, jar = (folder / f"{stem}{end}" for end in (".aar", ".pom", "-sources.jar"))
    write_aar(aar, package, classes, assets=assets)
    pom.write_text(pom_text(at), encoding="utf-8")
    sources = (package / "android" / "src" / part / "kotlin" for part in kotlin.PARTS)
    write_zip(jar, {name: file for below in sources for name, file in files_below(below).items()})
    versions = folder.parent / "maven-metadata.xml"
    versions.write_text(_versions(at, folder.parent), encoding="utf-8")
    write_checksums((aar, pom, jar, versions))
    return folder


def pom_text(at: Coordinates) -> str:
    """Return the POM: the library's own dependencies, which an app compiles against, too."""
    dependencies = "".join(
        f"    <dependency>\n      <groupId>{group}</groupId>\n"
        f"      <artifactId>{name}</artifactId>\n      <version>{version}</version>\n"
        "      <scope>compile</scope>\n    </dependency>\n"
        for group, name, version in gradle.dependencies()
    )
    return f"""<?xml version="1.0" encoding="UTF-8"?>
<project xmlns="{_POM}" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"
    xsi:schemaLocation="{_POM} https://maven.apache.org/xsd/maven-4.0.0.xsd">
  <modelVersion>4.0.0</modelVersion>
  <groupId>{escape(at.group)}</groupId>
  <artifactId>{escape(at.name)}</artifactId>
  <version>{escape(at.version)}</version>
  <packaging>aar</packaging>
  <name>Wherry</name>
  <description>Language models in an app, on the device.</description>
  <licenses>
    <license>
      <name>Apache-2.0</name>
      <url>https://www.apache.org/licenses/LICENSE-2.0</url>
    </license>
  </licenses>
  <dependencies>
{dependencies}  </dependencies>
</project>
"""


def _manifest(android: Path) -> bytes:
    """Return the library's manifest with what Gradle adds: the package, the oldest system."""
    name = "http://schemas.android.com/apk/res/android"
    ElementTree.register_namespace("android", name)
    root = ElementTree.parse(android / "src" / "main" / "AndroidManifest.xml").getroot()
    root.set("package", gradle.namespace())
    root.insert(0, ElementTree.Element("uses-sdk", {f"{{{name}}}minSdkVersion": gradle.min_sdk()}))
    ElementTree.indent(root, "    ")
    text: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return text + b"\n"


def _aar_metadata() -> bytes:
    lines = ["aarFormatVersion=1.0", "aarMetadataVersion=1.0"]
    lines += [f"minCompileSdk={gradle.min_sdk()}", "minCompileSdkExtension=0"]
    lines += ["minAndroidGradlePluginVersion=1.0.0", "coreLibraryDesugaringEnabled=false"]
    return "".join(f"{line}\n" for line in lines).encode()


def _plain(jar: Path) -> bytes:
    """Return the jar of the library's own classes; its bytes depend on its content alone."""
    again = jar.with_name(f"plain-{jar.name}")
    with zipfile.ZipFile(jar) as read:
        names = [n for n in read.namelist() if not n.endswith("/") and kotlin.in_library(n)]
        write_zip(again, {name: read.read(name) for name in names})
    content = again.read_bytes()
    again.unlink()
    return content


def _versions(at: Coordinates, folder: Path) -> str:
    def order(version: str) -> list[tuple[int, int | str]]:
        parts = re.findall(r"\d+|[A-Za-z]+", version)
        return [(1, int(part)) if part.isdigit() else (0, part) for part in parts]

    names = sorted((path.name for path in folder.iterdir() if path.is_dir()), key=order)
    listed = "".join(f"      <version>{escape(name)}</version>\n" for name in names)
    return f"""<?xml version="1.0" encoding="UTF-8"?>
<metadata>
  <groupId>{escape(at.group)}</groupId>
  <artifactId>{escape(at.name)}</artifactId>
  <versioning>
    <latest>{escape(names[-1])}</latest>
    <release>{escape(names[-1])}</release>
    <versions>
{listed}    </versions>
  </versioning>
</metadata>
"""
