// Short ways to write values in tests.

public import RealtimeModel

extension Node: ExpressibleByIntegerLiteral, ExpressibleByStringLiteral, ExpressibleByBooleanLiteral,
  ExpressibleByDictionaryLiteral, ExpressibleByNilLiteral, ExpressibleByFloatLiteral
{
  /// A value as its literal reads.
  public init(integerLiteral value: Int64) { self = .leaf(.int(value)) }
  /// A value as its literal reads.
  public init(floatLiteral value: Double) { self = .leaf(.double(value)) }
  /// A value as its literal reads.
  public init(stringLiteral value: String) { self = .leaf(.string(value)) }
  /// A value as its literal reads.
  public init(booleanLiteral value: Bool) { self = .leaf(.bool(value)) }
  /// A value as its literal reads.
  public init(nilLiteral: ()) { self = .empty }
  /// A value as its literal reads.
  public init(dictionaryLiteral elements: (ChildKey, Node)...) { self = .object(elements) }
}
