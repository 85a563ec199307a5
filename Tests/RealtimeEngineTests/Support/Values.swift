// Short ways to write values in tests.

public import RealtimeModel

extension Node: ExpressibleByIntegerLiteral, ExpressibleByStringLiteral, ExpressibleByBooleanLiteral,
  ExpressibleByDictionaryLiteral, ExpressibleByNilLiteral, ExpressibleByFloatLiteral
{
  public init(integerLiteral value: Int64) { self = .leaf(.int(value)) }
  public init(floatLiteral value: Double) { self = .leaf(.double(value)) }
  public init(stringLiteral value: String) { self = .leaf(.string(value)) }
  public init(booleanLiteral value: Bool) { self = .leaf(.bool(value)) }
  public init(nilLiteral: ()) { self = .empty }
  public init(dictionaryLiteral elements: (Key, Node)...) { self = .object(elements) }
}
