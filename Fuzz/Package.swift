// swift-tools-version: 6.2
import PackageDescription

// A package of its own, so that nobody who builds Hearth builds its fuzzers, and so that exactly the parsers
// under test are compiled with coverage. The modules are the same files, by link. `scripts/fuzz.sh` builds
// and runs it; it needs a toolchain with libFuzzer, which swift.org's have.
let strict: [SwiftSetting] = [
  .swiftLanguageMode(.v6),
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("MemberImportVisibility"),
  .enableUpcomingFeature("InternalImportsByDefault"),
  .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
]

let crypto: Target.Dependency = .product(name: "Crypto", package: "swift-crypto")
let protobuf: Target.Dependency = .product(name: "SwiftProtobuf", package: "swift-protobuf")
let hpack: Target.Dependency = .product(name: "NIOHPACK", package: "swift-nio-http2")
func nio(_ product: String) -> Target.Dependency { .product(name: product, package: "swift-nio") }

func module(
  _ name: String, exclude: [String] = [], _ dependencies: [Target.Dependency]
) -> Target {
  .target(name: name, dependencies: dependencies, exclude: exclude, swiftSettings: strict)
}

let package = Package(
  name: "Fuzz",
  platforms: [.macOS(.v14)],
  dependencies: [
    .package(url: "https://github.com/apple/swift-nio", from: "2.101.0"),
    .package(url: "https://github.com/apple/swift-nio-http2", from: "1.46.0"),
    .package(url: "https://github.com/apple/swift-protobuf", from: "1.39.0"),
    .package(url: "https://github.com/apple/swift-crypto", from: "4.5.0"),
  ],
  targets: [
    module("FirestoreModel", [crypto]),
    .target(
      name: "FirestoreProtobuf", dependencies: [protobuf], path: "Sources/FirestoreWire/Generated",
      swiftSettings: [.swiftLanguageMode(.v6)]),
    module(
      "FirestoreWire", exclude: ["Generated", "Protos"], ["FirestoreModel", "FirestoreProtobuf", protobuf]),
    module("RealtimeModel", [crypto]),
    module("RealtimeWire", ["RealtimeModel"]),
    module("GRPCFraming", [nio("NIOCore"), hpack]),
    .executableTarget(
      name: "fuzz",
      dependencies: [
        "FirestoreModel", "FirestoreProtobuf", "FirestoreWire", "RealtimeModel",
        "RealtimeWire", "GRPCFraming", protobuf, hpack, nio("NIOCore"), nio("NIOEmbedded"),
        nio("NIOWebSocket"),
      ],
      swiftSettings: strict),
  ]
)
