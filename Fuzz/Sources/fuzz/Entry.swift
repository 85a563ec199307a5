// Runs one target, which HEARTH_FUZZ_TARGET names, under libFuzzer, whose runtime holds `main`. A property that does not
// hold ends the process, which libFuzzer turns into a file that reproduces it.

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

/// What libFuzzer calls with every input.
@_cdecl("LLVMFuzzerTestOneInput")
public func testOneInput(_ data: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  do {
    try chosen.run(UnsafeRawBufferPointer(start: data, count: count))
  } catch {
    // Not through a buffer, which an abort would lose.
    let line = "property does not hold: \(error)\n"
    _ = line.withCString { write(2, $0, strlen($0)) }
    abort()
  }
  return 0
}
