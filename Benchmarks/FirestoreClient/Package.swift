// swift-tools-version: 6.2
import PackageDescription

// The measurements of the Firestore SDK for Swift. The package uses the SDK as an app does: by its public
// interface, without the server's packages.
let package = Package(
  name: "FirestoreClientBenchmarks",
  platforms: [.macOS(.v14)],
  dependencies: [.package(name: "hearth", path: "../..", traits: [])],
  targets: [
    .executableTarget(
      name: "FirestoreClientBenchmarks",
      dependencies: [
        .product(name: "FirebaseCore", package: "hearth"),
        .product(name: "FirebaseFirestore", package: "hearth"),
      ],
      path: "Sources",
      swiftSettings: [
        .swiftLanguageMode(.v6), .enableUpcomingFeature("ExistentialAny"),
        .enableUpcomingFeature("MemberImportVisibility"),
      ])
  ]
)
