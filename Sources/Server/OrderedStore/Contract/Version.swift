/// A point in a database's history: microseconds since 1970-01-01T00:00:00Z, strictly increasing by commit.
public struct Version: Hashable, Comparable, Sendable, CustomStringConvertible {
  /// Microseconds since the Unix epoch.
  public var microseconds: UInt64

  /// Makes a version from microseconds since the Unix epoch.
  public init(microseconds: UInt64) { self.microseconds = microseconds }

  /// The version before every commit.
  public static let zero = Version(microseconds: 0)

  /// Orders versions by time.
  public static func < (a: Version, b: Version) -> Bool { a.microseconds < b.microseconds }

  /// The microseconds in decimal.
  public var description: String { String(microseconds) }
}
