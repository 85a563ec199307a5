// Defines short literals for values in tests.

public import RealtimeModel

extension Node: ExpressibleByIntegerLiteral, ExpressibleByStringLiteral, ExpressibleByBooleanLiteral,
  ExpressibleByDictionaryLiteral, ExpressibleByNilLiteral, ExpressibleByFloatLiteral
{
  /// Creates a value from a literal.
  public init(integerLiteral value: Int64) { self = .leaf(.int(value)) }
  /// Creates a value from a literal.
  public init(floatLiteral value: Double) { self = .leaf(.double(value)) }
  /// Creates a value from a literal.
  public init(stringLiteral value: String) { self = .leaf(.string(value)) }
  /// Creates a value from a literal.
  public init(booleanLiteral value: Bool) { self = .leaf(.bool(value)) }
  /// Creates a value from a literal.
  public init(nilLiteral: ()) { self = .empty }
  /// Creates a value from a literal.
  public init(dictionaryLiteral elements: (ChildKey, Node)...) { self = .object(elements) }
}
