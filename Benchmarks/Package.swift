// swift-tools-version: 6.2
import PackageDescription

// The package of the benchmarks. It is separate, so that builds of Hearth do not build it. The server under
// test is the release binary in its own process. The generated messages, the engine's C module and the codecs
// that are measured alone are symbolic links to the same files.
let strict: [SwiftSetting] = [
  .swiftLanguageMode(.v6),
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("MemberImportVisibility"),
  .enableUpcomingFeature("InternalImportsByDefault"),
  .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
]

let crypto: Target.Dependency = .product(name: "Crypto", package: "swift-crypto")
let cryptoExtras: Target.Dependency = .product(name: "CryptoExtras", package: "swift-crypto")
let protobuf: Target.Dependency = .product(name: "SwiftProtobuf", package: "swift-protobuf")

func module(_ name: String, exclude: [String] = [], _ dependencies: [Target.Dependency]) -> Target {
  .target(name: name, dependencies: dependencies, exclude: exclude, swiftSettings: strict)
}

let package = Package(
  name: "Benchmarks",
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
    module("JSON", []),
    module("RealtimeModel", ["JSON", crypto]),
    module("RealtimeWire", ["JSON", "RealtimeModel"]),
    module("Locking", []),
    module("OrderedStore", ["Locking"]),
    module("Access", ["JSON", "Locking", "FirestoreModel", "RealtimeModel"]),
    module("SecurityRules", ["Access", "JSON", "Locking", "FirestoreModel", "RealtimeModel", crypto]),
    module(
      "Identity",
      ["Access", "JSON", "Locking", "OrderedStore", "CCrypt", "CArgon2", crypto, cryptoExtras]),
    .systemLibrary(name: "CRocksDB"),
    .systemLibrary(name: "CCrypt"),
    .systemLibrary(name: "CArgon2"),
    .executableTarget(
      name: "Benchmarks",
      dependencies: [
        "FirestoreWire", "FirestoreProtobuf", "RealtimeWire", "CRocksDB", "Access", "Identity", "JSON",
        "OrderedStore", "SecurityRules", "FirestoreModel", "RealtimeModel",
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOPosix", package: "swift-nio"),
        .product(name: "NIOHTTP1", package: "swift-nio"),
        .product(name: "NIOWebSocket", package: "swift-nio"),
        .product(name: "NIOConcurrencyHelpers", package: "swift-nio"),
        .product(name: "NIOHTTP2", package: "swift-nio-http2"),
        .product(name: "NIOHPACK", package: "swift-nio-http2"),
        protobuf,
      ],
      swiftSettings: [
        .swiftLanguageMode(.v6), .enableUpcomingFeature("ExistentialAny"),
        .enableUpcomingFeature("MemberImportVisibility"),
      ]),
  ]
)
