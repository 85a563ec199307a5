#!/usr/bin/env bash
# Makes a new package that depends on one product of this package, builds it in debug mode from nothing, and prints the times:
# first-build.sh PRODUCT. Its program imports the product and does nothing else.
set -euo pipefail
cd "$(dirname "$0")/.."
product=${1:?the product, such as FirebaseFirestore}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir -p "$folder/Sources/App"
cat >"$folder/Package.swift" <<END
// swift-tools-version: 6.2
import PackageDescription

let package = Package(
  name: "App", platforms: [.macOS(.v14)],
  dependencies: [.package(name: "hearth", path: "$PWD", traits: [])],
  targets: [.executableTarget(name: "App", dependencies: [.product(name: "$product", package: "hearth")])]
)
END
printf 'import %s\n\nprint("built")\n' "$product" >"$folder/Sources/App/main.swift"
cd "$folder"
TIMEFORMAT="first build of $product: %R s, processor time %U s + %S s"
time swift build >build.out 2>&1 || { cat build.out; exit 1; }
.build/debug/App
