// How a target says that a property does not hold.

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// Stops the run, so that libFuzzer keeps the input, unless the property holds.
func require(_ property: Bool, _ message: @autoclosure () -> String) {
  if property { return }
  print("property does not hold: \(message())")
  abort()
}

/// Ends the program after a wrong command line.
func exitWithFailure() -> Never { exit(2) }
