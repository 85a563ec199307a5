// How a target says that a property does not hold.

/// A property that does not hold.
struct PropertyFailure: Error, CustomStringConvertible {
  let description: String
}

/// Demands a property.
func require(_ property: Bool, _ message: @autoclosure () -> String) throws {
  guard property else { throw PropertyFailure(description: message()) }
}

/// Demands a value: what a target reads again, say.
func require<T>(_ value: T?, _ message: @autoclosure () -> String) throws -> T {
  guard let value else { throw PropertyFailure(description: message()) }
  return value
}
