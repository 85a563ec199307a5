// How a target says that a property does not hold.

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// Stops the run, so that libFuzzer keeps the input, unless the property holds.
func require(_ property: Bool, _ message: @autoclosure () -> String) {
  if property { return }
  // Not through a buffer, which an abort would lose.
  let line = "property does not hold: \(message())\n"
  _ = line.withCString { write(2, $0, strlen($0)) }
  abort()
}
