// Runs one fuzz target under libFuzzer, whose runtime contains `main`. HEARTH_FUZZ_TARGET names the target. A
// violated property ends the process, and libFuzzer writes the input to a file.

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

private let chosen: FuzzTarget = {
  let name = getenv("HEARTH_FUZZ_TARGET").map { String(cString: $0) } ?? ""
  guard let target = FuzzTarget(rawValue: name) else {
    print("HEARTH_FUZZ_TARGET names no target; there are \(FuzzTarget.allCases.map(\.rawValue))")
    exit(2)
  }
  return target
}()

/// The function that libFuzzer calls with every input.
@_cdecl("LLVMFuzzerTestOneInput")
public func testOneInput(_ data: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  do {
    try chosen.run(UnsafeRawBufferPointer(start: data, count: count))
  } catch {
    // Written without a buffer, which an abort would lose.
    let line = "property does not hold: \(error)\n"
    _ = line.withCString { write(2, $0, strlen($0)) }
    abort()
  }
  return 0
}
