// swift-tools-version: 5.9
import PackageDescription

// `wherry package --target iphone ... -o DIR` writes this Swift package to DIR, with
// Wherry.xcframework. On Linux the core is libwherry.so, which `wherry package --target
// linux-x86_64 -o DIR` writes:
//
//   swift build -Xcc -IDIR/include -Xlinker -LDIR/lib/linux-x86_64
#if os(Linux)
let core: Target = .systemLibrary(name: "CWherry", path: "Linux")
let privacy: [Resource] = []
#else
let core: Target = .binaryTarget(name: "CWherry", path: "Wherry.xcframework")
let privacy: [Resource] = [.copy("PrivacyInfo.xcprivacy")]
#endif

let package = Package(
    name: "Wherry",
    platforms: [.iOS(.v16), .macCatalyst(.v16)],
    products: [.library(name: "Wherry", targets: ["Wherry"])],
    targets: [
        core,
        .target(
            name: "Wherry", dependencies: ["CWherry"],
            exclude: privacy.isEmpty ? ["PrivacyInfo.xcprivacy"] : [], resources: privacy),
        .testTarget(name: "WherryTests", dependencies: ["Wherry"]),
    ]
)
