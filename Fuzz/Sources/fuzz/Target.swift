// Runs one fuzz target, which HEARTH_FUZZ_TARGET names, under libFuzzer, whose runtime holds `main`.
//
// A target takes any bytes and must neither crash nor hang nor break the property that it states. Failures
// are reported by aborting, which libFuzzer turns into a file that reproduces them.

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// What can be fuzzed.
private enum Target: String, CaseIterable {
  case json, websocket, grpc, protobuf, paths, index

  /// The one that was asked for.
  static let chosen: Target = {
    let name = getenv("HEARTH_FUZZ_TARGET").map { String(cString: $0) } ?? ""
    guard let target = Target(rawValue: name) else {
      print("HEARTH_FUZZ_TARGET names no target; there are \(allCases.map(\.rawValue))")
      exit(2)
    }
    return target
  }()
}

/// What libFuzzer calls with every input.
@_cdecl("LLVMFuzzerTestOneInput")
public func testOneInput(_ data: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  let input = UnsafeRawBufferPointer(start: data, count: count)
  switch Target.chosen {
  case .json: fuzzJSON(input)
  case .websocket: fuzzWebSocket(input)
  case .grpc: fuzzGRPC(input)
  case .protobuf: fuzzProtobuf(input)
  case .paths: fuzzPaths(input)
  case .index: fuzzIndexKeys(input)
  }
  return 0
}
