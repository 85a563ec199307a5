// The checks by which a target reports that its property does not hold.

/// A property that does not hold.
struct PropertyFailure: Error, CustomStringConvertible {
  let description: String
}

/// Throws unless a property holds.
func require(_ property: Bool, _ message: @autoclosure () -> String) throws {
  guard property else { throw PropertyFailure(description: message()) }
}

/// Throws unless there is a value, such as the result of reading output again.
func require<T>(_ value: T?, _ message: @autoclosure () -> String) throws -> T {
  guard let value else { throw PropertyFailure(description: message()) }
  return value
}
