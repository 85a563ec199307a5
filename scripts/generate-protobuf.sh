#!/bin/sh
# Generates the Swift code of the Firestore protocol from our .proto files. Run it after changing one of them.
# Needs protoc. Uses protoc-gen-swift from PATH or $PROTOC_GEN_SWIFT, or builds the version of the package's
# swift-protobuf in a separate scratch folder.
set -eu
cd "$(dirname "$0")/.."
protos=Sources/Shared/FirestoreWire/Protos
generated=Sources/Shared/FirestoreWire/Generated

plugin=${PROTOC_GEN_SWIFT:-$(command -v protoc-gen-swift || true)}
if [ -z "$plugin" ]; then
  checkout=.build/checkouts/swift-protobuf
  [ -d "$checkout" ] || { echo "run 'swift package resolve' first: $checkout is missing" >&2; exit 1; }
  scratch=${TMPDIR:-/tmp}/hearth-protoc-gen-swift
  swift build -c release --product protoc-gen-swift --package-path "$checkout" --scratch-path "$scratch"
  plugin=$scratch/release/protoc-gen-swift
fi

rm -f "$generated"/*.swift
# shellcheck disable=SC2046 # the paths hold no spaces
protoc -I "$protos" --plugin=protoc-gen-swift="$plugin" --swift_out="$generated" \
  --swift_opt=Visibility=Public --swift_opt=UseAccessLevelOnImports=true --swift_opt=FileNaming=DropPath \
  $(find "$protos" -name '*.proto' | LC_ALL=C sort)
echo "wrote $(find "$generated" -name '*.swift' | wc -l) files, $(cat "$generated"/*.swift | wc -l) lines, to $generated"
