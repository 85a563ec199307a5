// swift-tools-version: 6.2
import PackageDescription

// The package of the fuzzers. It is separate, so that builds of Hearth do not build the fuzzers, and so that
// fuzzed code is compiled with coverage. The modules are symbolic links to the same files, and the tests run
// the same targets over the corpora. `scripts/fuzz.sh` builds and runs it. It needs a toolchain with libFuzzer,
// such as those of swift.org.
let strict: [SwiftSetting] = [
  .swiftLanguageMode(.v6),
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("MemberImportVisibility"),
  .enableUpcomingFeature("InternalImportsByDefault"),
  .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
]

let crypto: Target.Dependency = .product(name: "Crypto", package: "swift-crypto")
let cryptoExtras: Target.Dependency = .product(name: "CryptoExtras", package: "swift-crypto")
let tls: Target.Dependency = .product(name: "NIOSSL", package: "swift-nio-ssl")
let protobuf: Target.Dependency = .product(name: "SwiftProtobuf", package: "swift-protobuf")
let hpack: Target.Dependency = .product(name: "NIOHPACK", package: "swift-nio-http2")
let http2: Target.Dependency = .product(name: "NIOHTTP2", package: "swift-nio-http2")
let grdb: Target.Dependency = .product(name: "GRDB", package: "GRDB.swift")
let sqlite: Target.Dependency = .product(name: "GRDBSQLite", package: "GRDB.swift")
let log: Target.Dependency = .product(name: "Logging", package: "swift-log")
func nio(_ product: String) -> Target.Dependency { .product(name: product, package: "swift-nio") }

func module(
  _ name: String, exclude: [String] = [], _ dependencies: [Target.Dependency] = [],
  _ more: [SwiftSetting] = []
) -> Target {
  .target(name: name, dependencies: dependencies, exclude: exclude, swiftSettings: strict + more)
}

// The fuzzers reach parsers that are internal.
let testable: [SwiftSetting] = [.unsafeFlags(["-enable-testing"])]

let package = Package(
  name: "Fuzz",
  platforms: [.macOS(.v14)],
  dependencies: [
    .package(url: "https://github.com/apple/swift-nio", from: "2.101.0"),
    .package(url: "https://github.com/apple/swift-nio-http2", from: "1.46.0"),
    .package(url: "https://github.com/apple/swift-nio-ssl", from: "2.37.0"),
    .package(url: "https://github.com/apple/swift-protobuf", from: "1.39.0"),
    .package(url: "https://github.com/apple/swift-crypto", from: "4.5.0"),
    .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"),
    .package(url: "https://github.com/apple/swift-log", from: "1.16.0"),
  ],
  targets: [
    module("FirestoreModel"),
    .target(
      name: "FirestoreProtobuf", dependencies: [protobuf], path: "Sources/FirestoreWire/Generated",
      swiftSettings: [.swiftLanguageMode(.v6)]),
    module(
      "FirestoreWire", exclude: ["Generated", "Protos"], ["FirestoreModel", "FirestoreProtobuf", protobuf]),
    module("JSON"),
    module("Locking"),
    module("RealtimeModel", ["JSON"]),
    module("RealtimeWire", ["JSON", "RealtimeModel"]),
    module("GRPCFraming", ["JSON", nio("NIOCore"), hpack]),
    .systemLibrary(name: "CZlib"),
    module("BlockLog"),
    module("OrderedStore", ["Locking"]),
    module("Access", ["JSON", "Locking", "FirestoreModel", "RealtimeModel"]),
    module(
      "FirestoreEngine",
      ["Access", "JSON", "Locking", "OrderedStore", "FirestoreModel", "FirestoreWire", crypto]),
    module("SecurityRules", ["Access", "JSON", "Locking", "FirestoreModel", "RealtimeModel", crypto]),
    module("RealtimeEngine", ["Access", "JSON", "Locking", "OrderedStore", "RealtimeModel", "RealtimeWire"]),
    // Without the listening port, the only part that needs TLS.
    module(
      "Ports", exclude: ["Listening/ListeningPort.swift", "Listening/PortTLS.swift"],
      [
        "GRPCFraming", "CZlib", nio("NIOCore"), nio("NIOPosix"), nio("NIOHTTP1"),
        nio("NIOConcurrencyHelpers"),
        http2, hpack, log,
      ], testable),
    module(
      "FirestoreEndpoints",
      [
        "Access", "Ports", "FirestoreEngine", "FirestoreModel", "FirestoreProtobuf", "FirestoreWire", "JSON",
        "RealtimeModel", "GRPCFraming", nio("NIOCore"), nio("NIOHTTP1"), nio("NIOConcurrencyHelpers"), http2,
        hpack, protobuf, log,
      ], testable),
    module(
      "RealtimeEndpoints",
      [
        "Access", "Ports", "RealtimeEngine", "SecurityRules", "FirestoreModel", "JSON", "RealtimeModel",
        "RealtimeWire", nio("NIOCore"), nio("NIOHTTP1"), nio("NIOWebSocket"), nio("NIOConcurrencyHelpers"),
        crypto, log,
      ], testable),
    .systemLibrary(name: "CCrypt"),
    .systemLibrary(name: "CArgon2"),
    module(
      "Identity",
      ["Access", "JSON", "Locking", "OrderedStore", "CCrypt", "CArgon2", crypto, cryptoExtras], testable),
    module(
      "IdentityEndpoints",
      [
        "Access", "Identity", "Ports", "JSON", "Locking", "OrderedStore", nio("NIOCore"), nio("NIOPosix"),
        nio("NIOHTTP1"), nio("NIOConcurrencyHelpers"), tls, crypto, log,
      ], testable),
    module(
      "EmulatorSuite",
      [
        "Access", "SecurityRules", "Identity", "IdentityEndpoints", "FirestoreEndpoints", "RealtimeEndpoints",
        "Ports", "FirestoreEngine", "RealtimeEngine", "FirestoreModel", "FirestoreWire", "BlockLog", "JSON",
        "RealtimeModel", nio("NIOCore"), nio("NIOPosix"), nio("NIOHTTP1"), nio("NIOWebSocket"),
        nio("NIOConcurrencyHelpers"), crypto, log,
      ], testable),
    module("FirebaseCore", ["Locking"]),
    module("FirebaseAuth", ["FirebaseCore", "Locking"], testable),
    module("FirebaseSharedSwift"),
    module(
      "FirebaseFirestore",
      [
        "FirebaseCore", "FirebaseSharedSwift", "FirestoreModel", "FirestoreProtobuf", "FirestoreWire",
        "GRPCFraming", "Locking", nio("NIOCore"), nio("NIOPosix"), http2, hpack, tls, protobuf,
        grdb, sqlite,
      ], testable),
    module(
      "FirebaseDatabase",
      [
        "FirebaseCore", "FirebaseSharedSwift", "Locking", "RealtimeModel", "RealtimeWire", nio("NIOCore"),
        nio("NIOPosix"), nio("NIOHTTP1"), nio("NIOWebSocket"), tls, grdb, sqlite,
      ], testable),
    .executableTarget(
      name: "fuzz",
      dependencies: [
        "Access", "FirestoreModel", "FirestoreProtobuf", "FirestoreWire", "FirestoreEngine", "JSON",
        "RealtimeModel", "RealtimeWire", "RealtimeEngine", "SecurityRules", "GRPCFraming", "OrderedStore",
        "Ports",
        "FirestoreEndpoints",
        "RealtimeEndpoints", "EmulatorSuite", "Identity", "IdentityEndpoints",
        protobuf, hpack, log,
        nio("NIOCore"), nio("NIOEmbedded"), nio("NIOHTTP1"), nio("NIOWebSocket"),
        nio("NIOConcurrencyHelpers"),
        "FirebaseAuth", "FirebaseCore", "FirebaseDatabase", "FirebaseFirestore", grdb,
      ],
      swiftSettings: strict),
  ]
)
