"""What `make release` makes of a package: a Maven repository, and a Swift package."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
import zipfile
from pathlib import Path
from xml.etree import ElementTree

import pytest
from mobile.release import __main__ as release
from mobile.release import gradle, kotlin, maven, swift
from mobile.release.archive import write_zip

from wherry.artifact.manifest import sha256_of
from wherry.packager import kotlin_library, package, swift_package, xcframework
from wherry.packager.platforms import PLATFORMS

from .conftest import run

POM = "{http://maven.apache.org/POM/4.0.0}"
ANDROID = "{http://schemas.android.com/apk/res/android}"
AT = maven.Coordinates("com.example.models", "fox", "1.2.0")
LIBRARY = "jniLibs/arm64-v8a/libwherry.so"
APPLE = {"ios-arm64": "iphone", "ios-arm64_x86_64-simulator": "ios-simulator"}


@pytest.fixture
def packaged(tmp_path) -> Path:
    """A package as `wherry package` lays it out; its libraries and weights are words."""
    folder = tmp_path / "package"
    files = {LIBRARY: b"native", "assets/demo/wherry.json": b"{}", "assets/demo/a.bin": b"w"}
    for name in APPLE:
        files[f"{xcframework.NAME}/{name}/libwherry.a"] = name.encode()
        files[f"{xcframework.NAME}/{name}/Headers/CWherry/wherry.h"] = b"//"
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    kotlin_library.write_library(folder / kotlin_library.NAME)
    swift_package.write_package(folder)
    platforms = {name: PLATFORMS[platform] for name, platform in APPLE.items()}
    xcframework.write_info(folder / xcframework.NAME, platforms)
    libraries = [name for name in files if name.endswith((".so", ".a"))]
    listed = [{"path": n, "sha256": sha256_of(folder / n)} for n in libraries]
    index = {"libraries": listed, "missing": {}}
    (folder / package.INDEX).write_text(json.dumps(index))
    return folder


@pytest.fixture
def classes(tmp_path) -> Path:
    """A jar in place of the compiled library."""
    write_zip(tmp_path / "classes.jar", {"dev/wherry/MLCEngine.class": b"class"})
    return tmp_path / "classes.jar"


def test_an_archive_of_an_android_library(packaged, classes, tmp_path):
    for assets in (True, False):
        folder = maven.write_artefact(tmp_path / "maven", AT, packaged, classes, assets=assets)
        with zipfile.ZipFile(folder / "fox-1.2.0.aar") as aar:
            assert aar.testzip() is None
            names = set(aar.namelist())
            manifest = ElementTree.fromstring(aar.read("AndroidManifest.xml"))
            with zipfile.ZipFile(aar.open("classes.jar")) as jar:
                assert jar.namelist() == ["dev/wherry/MLCEngine.class"]
            metadata = aar.read("META-INF/com/android/build/gradle/aar-metadata.properties")
            assert aar.read("jni/arm64-v8a/libwherry.so") == b"native"
            assert aar.read("proguard.txt").decode().count("-keep") == 4
        assert {"R.txt", "classes.jar", "proguard.txt"} <= names
        assert ("assets/demo/a.bin" in names) is assets
        assert manifest.get("package") == "dev.wherry"
        assert manifest.find("uses-sdk").get(f"{ANDROID}minSdkVersion") == gradle.min_sdk()
        assert manifest.find("application/uses-native-library") is not None
        assert b"minCompileSdk=26\n" in metadata


def test_a_pom_has_the_dependencies_of_the_gradle_module():
    root = ElementTree.fromstring(maven.pom_text(AT))
    fields = ("groupId", "artifactId", "version", "packaging")
    assert [root.findtext(f"{POM}{name}") for name in fields] == [
        AT.group,
        AT.name,
        AT.version,
        "aar",
    ]
    names = [
        ":".join(one.findtext(f"{POM}{part}") for part in ("groupId", "artifactId", "version"))
        for one in root.iter(f"{POM}dependency")
    ]
    build = (gradle.ANDROID / "build.gradle.kts").read_text()
    assert names[1:] == re.findall(r'api\("(.*?)"\)', build) and len(names) == 3
    assert names[0] == f"org.jetbrains.kotlin:kotlin-stdlib:{gradle.kotlin()}"


def test_a_repository_keeps_older_versions_and_has_checksums(packaged, classes, tmp_path):
    for version in ("1.10.0", "1.9.0"):
        at = maven.Coordinates(AT.group, AT.name, version)
        folder = maven.write_artefact(tmp_path / "maven", at, packaged, classes, assets=False)
    root = ElementTree.parse(folder.parent / "maven-metadata.xml").getroot()
    assert [v.text for v in root.iter("version")] == ["1.9.0", "1.10.0"]
    assert root.findtext("versioning/release") == "1.10.0"
    files = [p for p in folder.parent.rglob("fox-*") if p.suffix in (".aar", ".pom", ".jar")]
    assert len(files) == 6
    for file in [*files, folder.parent / "maven-metadata.xml"]:
        for kind in ("md5", "sha1", "sha256", "sha512"):
            checksum = file.with_name(f"{file.name}.{kind}").read_text()
            assert checksum == hashlib.new(kind, file.read_bytes()).hexdigest()
    with zipfile.ZipFile(folder / "fox-1.9.0-sources.jar") as sources:
        assert {"dev/wherry/MLCEngine.kt", "dev/wherry/android/Models.kt"} <= {*sources.namelist()}


def test_the_same_package_makes_the_same_bytes(packaged, classes, tmp_path):
    one, two = (
        maven.write_artefact(tmp_path / name, AT, packaged, classes, assets=True) for name in "ab"
    )
    assert [p.read_bytes() for p in sorted(one.iterdir())] == [
        p.read_bytes() for p in sorted(two.iterdir())
    ]
    zips = [swift.write_package(tmp_path / name, packaged, "1.0", None) for name in "cd"]
    assert zips[0].read_bytes() == zips[1].read_bytes()


@pytest.mark.parametrize("url", [None, "https://example.org/releases/"])
def test_a_swift_package_names_its_archive(packaged, tmp_path, url):
    folder = tmp_path / "swift"
    archive = swift.write_package(folder, packaged, "1.2.0", url)
    checksum = hashlib.sha256(archive.read_bytes()).hexdigest()
    line = f"{checksum}  Wherry-1.2.0.xcframework.zip\n"
    assert (folder / "Wherry-1.2.0.xcframework.zip.sha256").read_text() == line
    manifest = (folder / "Package.swift").read_text()
    if url is None:
        assert 'binaryTarget(name: "CWherry", path: "Wherry-1.2.0.xcframework.zip")' in manifest
    else:
        assert f'name: "CWherry", url: "{url}Wherry-1.2.0.xcframework.zip",' in manifest
        assert f'checksum: "{checksum}")' in manifest
    assert 'path: "Wherry.xcframework"' not in manifest
    with zipfile.ZipFile(archive) as read:
        assert {name.split("/")[0] for name in read.namelist()} == {"Wherry.xcframework"}
        assert b"ios-arm64_x86_64-simulator" in read.read("Wherry.xcframework/Info.plist")
    assert (folder / "Sources" / "Wherry" / "MLCEngine.swift").is_file()
    if shutil.which("swift"):
        described = json.loads(run(["swift", "package", "dump-package"], cwd=folder))
        assert described["name"] == "Wherry"


def test_an_incomplete_package_is_refused(packaged, tmp_path):
    with pytest.raises(SystemExit, match="is no package"):
        release.main([str(tmp_path)])
    (packaged / LIBRARY).write_bytes(b"other")
    (packaged / xcframework.NAME / "ios-arm64" / "libwherry.a").unlink()
    with pytest.raises(SystemExit) as e:
        release.main([str(packaged)])
    assert f"{LIBRARY} is not the file that was packaged" in str(e.value)
    assert "ios-arm64/libwherry.a is missing" in str(e.value)
    index = {"libraries": [], "missing": {"android": []}}
    (packaged / package.INDEX).write_text(json.dumps(index))
    with pytest.raises(SystemExit, match="android: its compiler was missing"):
        release.main([str(packaged)])
    with pytest.raises(SystemExit, match="is no Maven name"):
        maven.Coordinates("a/b", "c", "1").check()


@pytest.mark.nightly
@pytest.mark.mobile
def test_a_release_of_compiled_classes(packaged, jars, tmp_path):
    """Its classes are Kotlin's of the version that Gradle's build has, for old devices."""
    folder = str(Path(jars.split(":")[0]).parent)
    release.main([str(packaged), "-o", str(tmp_path / "out"), "--kotlin", folder])
    version = gradle.version()
    place = tmp_path / "out" / "maven" / "dev" / "wherry" / "wherry" / version
    with zipfile.ZipFile(place / f"wherry-{version}.aar") as aar:
        aar.extract("classes.jar", tmp_path)
    with zipfile.ZipFile(tmp_path / "classes.jar") as jar:
        names = set(jar.namelist())
    assert {"dev/wherry/MLCEngine.class", "dev/wherry/android/ModelsKt.class"} <= names
    assert "META-INF/wherry.kotlin_module" in names
    assert "dev/wherry/android/DownloadWorker.class" in names
    assert all(name.startswith(("dev/wherry/", "META-INF/")) for name in names)
    said = run(["javap", "-v", "-cp", tmp_path / "classes.jar", "dev.wherry.MLCEngine"])
    assert "major version: 52" in said  # Java 8
    assert re.search(r"mv=\[2,3,0\]", said)
    # A flag of 2 would say: made by a compiler before its release, which others refuse to read.
    assert int(re.search(r"xi=(\d+)", said)[1]) & 2 == 0
    app = tmp_path / "app.kt"
    app.write_text('fun main() { println(dev.wherry.Message.user("Hi")) }\n')
    words = ["java", "-cp", jars, "org.jetbrains.kotlin.cli.jvm.K2JVMCompiler", "-no-stdlib"]
    words += ["-cp", f"{jars}:{tmp_path / 'classes.jar'}", "-d", tmp_path / "app", app]
    subprocess.run([str(word) for word in words], check=True)


def test_there_is_no_compiler(tmp_path):
    with pytest.raises(SystemExit, match="kotlin-jupyter-kernel"):
        kotlin.compile_library([], tmp_path / "classes.jar")
