// Runs one fuzz target under libFuzzer: `fuzz TARGET [libFuzzer's arguments]`.
//
// A target takes any bytes and must neither crash nor hang nor break the property that it states. Failures
// are reported by trapping, which libFuzzer turns into a file that reproduces them.

import CLibFuzzer

let targets: [String: @convention(c) (UnsafePointer<UInt8>?, Int) -> CInt] = [
  "json": { fuzzJSON(UnsafeRawBufferPointer(start: $0, count: $1)) },
  "websocket": { fuzzWebSocket(UnsafeRawBufferPointer(start: $0, count: $1)) },
  "grpc": { fuzzGRPC(UnsafeRawBufferPointer(start: $0, count: $1)) },
  "protobuf": { fuzzProtobuf(UnsafeRawBufferPointer(start: $0, count: $1)) },
  "paths": { fuzzPaths(UnsafeRawBufferPointer(start: $0, count: $1)) },
  "index": { fuzzIndexKeys(UnsafeRawBufferPointer(start: $0, count: $1)) },
]

guard CommandLine.arguments.count > 1, let target = targets[CommandLine.arguments[1]] else {
  print("usage: fuzz TARGET [corpus …] [-option=value …], TARGET one of \(targets.keys.sorted())")
  exitWithFailure()
}

var arguments = CommandLine.unsafeArgv + 1
var count = CommandLine.argc - 1
// The driver wants the program's name first; the target's name stands in for it.
withUnsafeMutablePointer(to: &arguments) { pointer in
  pointer.withMemoryRebound(to: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?.self, capacity: 1) {
    _ = LLVMFuzzerRunDriver(&count, $0, target)
  }
}
