// swift-tools-version: 6.2
import PackageDescription

// The settings every hand-written target compiles under; docs/decisions/0003 says why each is on.
let strict: [SwiftSetting] = [
  .swiftLanguageMode(.v6),
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("MemberImportVisibility"),
  .enableUpcomingFeature("InternalImportsByDefault"),
  .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
]

// Packages that only the server needs are behind this trait. An app that depends on the SDK with `traits: []` neither
// downloads nor builds them.
let server: TargetDependencyCondition? = .when(traits: ["Server"])

func nio(_ product: String) -> Target.Dependency { .product(name: product, package: "swift-nio") }
let http2: Target.Dependency = .product(name: "NIOHTTP2", package: "swift-nio-http2")
let hpack: Target.Dependency = .product(name: "NIOHPACK", package: "swift-nio-http2")
let tls: Target.Dependency = .product(name: "NIOSSL", package: "swift-nio-ssl")
let protobuf: Target.Dependency = .product(name: "SwiftProtobuf", package: "swift-protobuf")
let crypto: Target.Dependency = .product(name: "Crypto", package: "swift-crypto", condition: server)
let cryptoExtras: Target.Dependency = .product(
  name: "CryptoExtras", package: "swift-crypto", condition: server)
let grdb: Target.Dependency = .product(name: "GRDB", package: "GRDB.swift")
let sqlite: Target.Dependency = .product(name: "GRDBSQLite", package: "GRDB.swift")
// Apple's platforms have Combine. SwiftPM downloads this package for every app, but builds it only for apps with a Combine product.
let combine: Target.Dependency = .product(
  name: "OpenCombine", package: "OpenCombine", condition: .when(platforms: [.linux, .android, .windows]))
let log: Target.Dependency = .product(name: "Logging", package: "swift-log", condition: server)
let arguments: Target.Dependency = .product(
  name: "ArgumentParser", package: "swift-argument-parser", condition: server)

/// A module under `Sources/<layer>/<name>`, compiled under the strict settings.
func module(
  _ name: String, in layer: String, exclude: [String] = [], _ dependencies: [Target.Dependency] = []
) -> Target {
  .target(
    name: name, dependencies: dependencies, path: "Sources/\(layer)/\(name)", exclude: exclude,
    swiftSettings: strict)
}

/// The tests of one module, in the folder of the same name.
func tests(of name: String, _ dependencies: [Target.Dependency]) -> Target {
  .testTarget(
    name: "\(name)Tests", dependencies: dependencies, path: "Tests/\(name)Tests",
    swiftSettings: strict)
}

/// The dependencies of every test that serves a port.
let endpointModules: [Target.Dependency] = [
  "Access", "EmulatorSuite", "FirestoreEndpoints", "RealtimeEndpoints", "Ports", "HearthServer",
  "FirestoreEngine", "RealtimeEngine", "SecurityRules", "FirestoreProtobuf", "JSON", "Locking",
  "FirestoreWire", "FirestoreModel", "RealtimeModel", "RealtimeWire", "GRPCFraming",
  "OrderedStore", "EmbeddedStore", "RandomModels", "CZlib", nio("NIOCore"), nio("NIOPosix"),
  nio("NIOHTTP1"), nio("NIOWebSocket"), nio("NIOEmbedded"), http2, hpack, tls, protobuf, log,
]

let package = Package(
  name: "hearth",
  platforms: [.macOS(.v14), .iOS(.v15)],
  products: [
    .executable(name: "hearth", targets: ["hearth"]),
    .library(name: "FirebaseAuth", targets: ["FirebaseAuth"]),
    .library(name: "FirebaseAuthCombine-Community", targets: ["FirebaseAuthCombineSwift"]),
    .library(name: "FirebaseCore", targets: ["FirebaseCore"]),
    .library(name: "FirebaseDatabase", targets: ["FirebaseDatabase"]),
    .library(name: "FirebaseFirestore", targets: ["FirebaseFirestore"]),
    .library(name: "FirebaseFirestoreCombine-Community", targets: ["FirebaseFirestoreCombineSwift"]),
    .library(name: "Firebase", targets: ["Firebase"]),
  ],
  traits: [
    .trait(name: "Server", description: "The server `hearth` and everything only it depends on."),
    .default(enabledTraits: ["Server"]),
  ],
  dependencies: [
    .package(url: "https://github.com/apple/swift-nio", from: "2.101.0"),
    .package(url: "https://github.com/apple/swift-nio-http2", from: "1.46.0"),
    .package(url: "https://github.com/apple/swift-nio-ssl", from: "2.37.0"),
    .package(url: "https://github.com/apple/swift-protobuf", from: "1.39.0"),
    .package(url: "https://github.com/apple/swift-crypto", from: "4.5.0"),
    .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"),
    .package(url: "https://github.com/OpenCombine/OpenCombine", from: "0.14.0"),
    .package(url: "https://github.com/apple/swift-log", from: "1.16.0"),
    .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.0"),
  ],
  targets: [
    // Code that client and server share.
    module("JSON", in: "Shared"),
    module("Locking", in: "Shared"),
    module("FirestoreModel", in: "Shared"),
    .target(
      name: "FirestoreProtobuf", dependencies: [protobuf],
      path: "Sources/Shared/FirestoreWire/Generated", swiftSettings: [.swiftLanguageMode(.v6)]),
    module(
      "FirestoreWire", in: "Shared", exclude: ["Generated", "Protos"],
      ["FirestoreModel", "FirestoreProtobuf", protobuf]),
    module("RealtimeModel", in: "Shared", ["JSON"]),
    module("RealtimeWire", in: "Shared", ["JSON", "RealtimeModel"]),
    module("GRPCFraming", in: "Shared", ["JSON", nio("NIOCore"), hpack]),

    // The server.
    module("OrderedStore", in: "Server", ["Locking"]),
    module("OrderedStoreConformance", in: "Server", ["Locking", "OrderedStore"]),
    .systemLibrary(name: "CRocksDB", path: "Sources/Server/CRocksDB"),
    .systemLibrary(name: "CZlib", path: "Sources/Server/CZlib"),
    .systemLibrary(name: "CMalloc", path: "Sources/Server/CMalloc"),
    .systemLibrary(name: "CCrypt", path: "Sources/Server/CCrypt"),
    .systemLibrary(name: "CArgon2", path: "Sources/Server/CArgon2"),
    module("BlockLog", in: "Server"),
    module("Access", in: "Server", ["JSON", "Locking", "FirestoreModel", "RealtimeModel"]),
    module("EmbeddedStore", in: "Server", ["BlockLog", "Locking", "OrderedStore", "CRocksDB"]),
    module(
      "FirestoreEngine", in: "Server",
      ["Access", "JSON", "Locking", "OrderedStore", "FirestoreModel", "FirestoreWire", crypto]),
    module(
      "RealtimeEngine", in: "Server",
      ["Access", "JSON", "Locking", "OrderedStore", "RealtimeModel", "RealtimeWire"]),
    module(
      "SecurityRules", in: "Server",
      ["Access", "JSON", "Locking", "FirestoreModel", "RealtimeModel", crypto]),
    module(
      "Ports", in: "Server",
      [
        "GRPCFraming", "CZlib", nio("NIOCore"), nio("NIOPosix"), nio("NIOHTTP1"),
        nio("NIOConcurrencyHelpers"),
        http2, hpack, tls, log,
      ]),
    module(
      "FirestoreEndpoints", in: "Server",
      [
        "Access", "Ports", "FirestoreEngine", "FirestoreModel", "FirestoreProtobuf", "FirestoreWire", "JSON",
        "RealtimeModel", "GRPCFraming", nio("NIOCore"), nio("NIOHTTP1"), nio("NIOConcurrencyHelpers"), http2,
        hpack, protobuf, log,
      ]),
    module(
      "RealtimeEndpoints", in: "Server",
      [
        "Access", "Ports", "RealtimeEngine", "SecurityRules", "FirestoreModel", "JSON", "RealtimeModel",
        "RealtimeWire", nio("NIOCore"), nio("NIOHTTP1"), nio("NIOWebSocket"), nio("NIOConcurrencyHelpers"),
        crypto, log,
      ]),
    module(
      "Identity", in: "Server",
      ["Access", "JSON", "Locking", "OrderedStore", "CCrypt", "CArgon2", crypto, cryptoExtras]),
    module(
      "IdentityEndpoints", in: "Server",
      [
        "Access", "Identity", "Ports", "JSON", "Locking", "OrderedStore", nio("NIOCore"), nio("NIOPosix"),
        nio("NIOHTTP1"), nio("NIOConcurrencyHelpers"), tls, crypto, log,
      ]),
    module(
      "RulesEndpoints", in: "Server",
      [
        "Access", "FirestoreEndpoints", "FirestoreEngine", "FirestoreModel", "JSON", "Ports", "SecurityRules",
        nio("NIOCore"), nio("NIOHTTP1"), log,
      ]),
    module(
      "EmulatorSuite", in: "Server",
      [
        "Access", "FirestoreEndpoints", "RealtimeEndpoints", "Ports", "FirestoreEngine", "RealtimeEngine",
        "Identity", "IdentityEndpoints", "SecurityRules",
        "FirestoreModel", "FirestoreWire", "BlockLog", "JSON", "RealtimeModel", nio("NIOCore"),
        nio("NIOPosix"), nio("NIOHTTP1"), nio("NIOWebSocket"), nio("NIOConcurrencyHelpers"), crypto, log,
      ]),
    module(
      "HearthServer", in: "Server",
      [
        "Access", "EmulatorSuite", "FirestoreEndpoints", "RealtimeEndpoints", "Ports", "Identity",
        "IdentityEndpoints", "FirestoreEngine", "FirestoreModel", "RealtimeEngine", "OrderedStore",
        "RulesEndpoints", "SecurityRules",
        "EmbeddedStore", "JSON", "RealtimeModel", "CMalloc", nio("NIOCore"), nio("NIOHTTP1"),
        nio("NIOPosix"), tls, log,
      ]),
    .executableTarget(
      name: "hearth",
      dependencies: ["HearthServer", "FirestoreEngine", "RealtimeEngine", "SecurityRules", arguments, log],
      path: "Sources/Server/hearth", swiftSettings: strict),

    // The SDKs.
    module("FirebaseCore", in: "SDK", ["Locking"]),
    module("FirebaseAuth", in: "SDK", ["FirebaseCore", "Locking"]),
    module("FirebaseSharedSwift", in: "SDK"),
    module(
      "FirebaseDatabase", in: "SDK",
      [
        "FirebaseCore", "FirebaseSharedSwift", "Locking", "RealtimeModel", "RealtimeWire", nio("NIOCore"),
        nio("NIOPosix"), nio("NIOHTTP1"), nio("NIOWebSocket"), tls, grdb, sqlite,
      ]),
    module(
      "FirebaseFirestore", in: "SDK",
      [
        "FirebaseCore", "FirebaseSharedSwift", "FirestoreModel", "FirestoreProtobuf",
        "FirestoreWire", "GRPCFraming", "Locking", nio("NIOCore"), nio("NIOPosix"), http2, hpack, tls,
        protobuf, grdb, sqlite,
      ]),
    module("PublisherSupport", in: "SDK", [combine]),
    module("FirebaseAuthCombineSwift", in: "SDK", ["FirebaseAuth", "PublisherSupport", combine]),
    module("FirebaseFirestoreCombineSwift", in: "SDK", ["FirebaseFirestore", "PublisherSupport", combine]),
    module(
      "Firebase", in: "SDK",
      ["FirebaseAuth", "FirebaseCore", "FirebaseDatabase", "FirebaseFirestore", "FirebaseSharedSwift"]),

    // Examples; continuous integration builds and runs them.
    .target(name: "Terminal", path: "Examples/Terminal", swiftSettings: strict),
    .executableTarget(
      name: "Reminders", dependencies: ["FirebaseCore", "FirebaseFirestore", "Terminal"],
      path: "Examples/Reminders/Sources", swiftSettings: strict),
    .executableTarget(
      name: "Books", dependencies: ["FirebaseCore", "FirebaseFirestore", "Terminal"],
      path: "Examples/Books/Sources", swiftSettings: strict),
    .executableTarget(
      name: "SocialBlog", dependencies: ["FirebaseCore", "FirebaseDatabase", "Terminal"],
      path: "Examples/SocialBlog/Sources", swiftSettings: strict),
    .executableTarget(
      name: "Connect",
      dependencies: ["FirebaseAuth", "FirebaseCore", "FirebaseDatabase", "FirebaseFirestore"],
      path: "Examples/Connect/Sources", swiftSettings: strict),

    // Code that tests share.
    .target(
      name: "RandomModels", dependencies: ["FirestoreModel", "JSON", "RealtimeModel"],
      path: "Tests/Support/RandomModels", swiftSettings: strict),
    .target(
      name: "AccessFixture", dependencies: ["Access", "FirestoreModel", "Locking"],
      path: "Tests/Support/AccessFixture", swiftSettings: strict),
    .target(
      name: "NaiveRealtimeRules", dependencies: ["SecurityRules", "RandomModels", "JSON", "RealtimeModel"],
      path: "Tests/Support/NaiveRealtimeRules", swiftSettings: strict),
    .target(
      name: "StoreFixture", dependencies: ["Locking", "OrderedStore"], path: "Tests/Support/StoreFixture",
      swiftSettings: strict),
    .target(
      name: "ServerFixture",
      dependencies: [nio("NIOCore"), nio("NIOPosix"), nio("NIOConcurrencyHelpers")],
      path: "Tests/Support/ServerFixture", swiftSettings: strict),

    .target(
      name: "EndpointFixture", dependencies: endpointModules, path: "Tests/Support/EndpointFixture",
      swiftSettings: strict),

    // The tests, one target per module.
    tests(of: "JSON", ["JSON", "RandomModels"]),
    tests(of: "FirestoreModel", ["FirestoreModel", "RandomModels"]),
    tests(
      of: "FirestoreWire",
      ["FirestoreWire", "FirestoreProtobuf", "FirestoreModel", "RandomModels", protobuf]),
    tests(of: "RealtimeModel", ["JSON", "RealtimeModel", "RandomModels"]),
    tests(of: "RealtimeWire", ["JSON", "RealtimeWire", "RealtimeModel", "RandomModels"]),
    tests(of: "GRPCFraming", ["GRPCFraming", "RandomModels", nio("NIOCore"), hpack]),
    tests(
      of: "OrderedStore",
      ["Locking", "OrderedStore", "OrderedStoreConformance", "RandomModels", "StoreFixture"]),
    tests(
      of: "EmbeddedStore",
      ["EmbeddedStore", "BlockLog", "Locking", "OrderedStore", "OrderedStoreConformance"]),
    tests(of: "Access", ["Access", "JSON", "Locking", "FirestoreModel", "RealtimeModel"]),
    tests(
      of: "FirestoreEngine",
      [
        "Access", "AccessFixture", "FirestoreEngine", "FirestoreModel", "FirestoreWire", "JSON", "Locking",
        "OrderedStore",
        "EmbeddedStore", "RandomModels", "StoreFixture",
      ]),
    tests(
      of: "RealtimeEngine",
      [
        "Access", "RealtimeEngine", "JSON", "Locking", "RealtimeModel", "RealtimeWire", "OrderedStore",
        "EmbeddedStore", "RandomModels", "StoreFixture",
      ]),
    tests(
      of: "SecurityRules",
      [
        "SecurityRules", "Access", "FirestoreEngine", "OrderedStore", "Locking", "RandomModels",
        "NaiveRealtimeRules", "JSON", "FirestoreModel", "RealtimeModel",
      ]),
    tests(of: "Ports", endpointModules + ["EndpointFixture"]),
    tests(of: "FirestoreEndpoints", endpointModules + ["AccessFixture", "EndpointFixture"]),
    tests(of: "RealtimeEndpoints", endpointModules + ["EndpointFixture", "NaiveRealtimeRules"]),
    tests(
      of: "Identity",
      ["Identity", "Access", "JSON", "Locking", "OrderedStore", "EmbeddedStore", crypto, cryptoExtras]),
    tests(
      of: "IdentityEndpoints",
      [
        "IdentityEndpoints", "Identity", "Access", "HearthServer", "JSON", "OrderedStore", "Ports",
        "FirestoreProtobuf", "GRPCFraming", nio("NIOCore"), nio("NIOPosix"), nio("NIOHTTP1"),
        nio("NIOConcurrencyHelpers"), tls, crypto, cryptoExtras, log, protobuf, "EndpointFixture",
        "ServerFixture",
      ]),
    tests(of: "EmulatorSuite", endpointModules + ["EndpointFixture"]),
    tests(
      of: "Fuzz",
      [
        "Access", "EmulatorSuite", "Identity", "IdentityEndpoints", "FirestoreEndpoints",
        "RealtimeEndpoints", "Ports", "FirestoreEngine", "RealtimeEngine", "OrderedStore",
        "FirestoreProtobuf", "SecurityRules",
        "FirestoreWire", "JSON", "FirestoreModel", "RealtimeModel", "RealtimeWire", "GRPCFraming",
        nio("NIOCore"), nio("NIOPosix"), nio("NIOHTTP1"), nio("NIOWebSocket"), nio("NIOEmbedded"),
        nio("NIOConcurrencyHelpers"), hpack, protobuf, log,
        "FirebaseAuth", "FirebaseCore", "FirebaseDatabase", "FirebaseFirestore", grdb,
      ]),
    tests(
      of: "HearthServer",
      [
        "HearthServer", "Access", "FirestoreEndpoints", "FirestoreEngine", "FirestoreModel",
        "IdentityEndpoints", "RealtimeEngine", "EmbeddedStore", "OrderedStore", "EndpointFixture",
        "FirestoreProtobuf", "GRPCFraming", "Identity", "JSON", nio("NIOCore"), nio("NIOPosix"),
        nio("NIOHTTP1"), nio("NIOConcurrencyHelpers"), cryptoExtras, protobuf, log,
      ]),
    tests(of: "FirebaseCore", ["FirebaseCore", "Locking"]),
    tests(
      of: "FirebaseAuth",
      [
        "FirebaseAuth", "FirebaseAuthCombineSwift", "FirebaseCore", "HearthServer", "Locking",
        "ServerFixture",
        nio("NIOCore"), nio("NIOPosix"), nio("NIOHTTP1"), crypto, combine,
      ]),
    tests(of: "FirebaseSharedSwift", ["FirebaseSharedSwift"]),
    tests(
      of: "FirebaseDatabase",
      [
        "FirebaseDatabase", "FirebaseCore", "FirebaseSharedSwift", "JSON", "Locking", "RealtimeModel",
        "RealtimeWire", "HearthServer", "RandomModels", "ServerFixture", nio("NIOCore"), nio("NIOPosix"),
        grdb,
      ]),
    tests(
      of: "FirebaseFirestore",
      [
        "FirebaseFirestore", "FirebaseCore", "FirebaseSharedSwift", "FirestoreModel",
        "FirestoreProtobuf", "FirestoreWire", "HearthServer", "ServerFixture", protobuf, grdb,
        nio("NIOCore"), nio("NIOPosix"), http2, hpack, "FirebaseFirestoreCombineSwift", combine,
      ]),
    tests(
      of: "Firebase",
      [
        "Firebase", "FirebaseAuth", "FirebaseCore", "FirebaseDatabase", "FirebaseFirestore",
        "FirebaseSharedSwift", "FirebaseAuthCombineSwift", "FirebaseFirestoreCombineSwift", "HearthServer",
        combine,
      ]),
  ]
)

#if os(Linux)
  // Power cuts, failing disks and full ones, done to a child process; the shim is compiled when it is used.
  package.targets += [
    .executableTarget(
      name: "hearth-crash", dependencies: ["Access", "EmbeddedStore", "Identity", "JSON", "OrderedStore"],
      path: "Tests/PowerCut", exclude: ["shim.c", "Client"],
      swiftSettings: strict),
    .executableTarget(
      name: "hearth-crash-client",
      dependencies: ["FirebaseCore", "FirebaseDatabase", "FirebaseFirestore", "Locking"],
      path: "Tests/PowerCut/Client", swiftSettings: strict),
  ]
#endif
