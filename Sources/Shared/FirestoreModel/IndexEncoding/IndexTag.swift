// Index tags mark the parts of index keys. This file documents the format of index keys.
//
// Invariant: no encoding of a value, segment or path is a prefix of another. Therefore parts can follow each other in a
// key, and inverting all bytes of a part reverses its order. `end` is below every tag, so an array, map or path sorts
// before the longer ones that begin with it.
//
//     null       10
//     boolean    20, 00 | 01
//     number     30, ordered double (8); if its magnitude is 2^53 or more, a remainder (2), see `OrderedDouble`
//     timestamp  40, seconds with the sign flipped (8), nanoseconds (4)
//     pending    48, as timestamp (clients only)
//     string     50, UTF-8 with 00 written 00 FF, then 00 01; truncated at 1,500 bytes
//     bytes      60, as string
//     reference  70, project, database (as string's payload), path
//     geo point  80, two ordered doubles
//     array      90, values, 01
//     vector     A0, dimension (4), ordered doubles
//     map        B0, (02, key as string's payload, value)…, 01
//     path       segments (02 and a number | 03 and text as above), 01
//
// Example: the string "a" is 50 61 00 01; the integer 1 and the double 1.0 are 30 BF F0 00 00 00 00 00 00.

/// Tags and markers of index keys.
enum IndexTag {
  static let end: UInt8 = 0x01
  static let numberSegment: UInt8 = 0x02
  static let textSegment: UInt8 = 0x03
  static let mapEntry: UInt8 = 0x02

  static let escape: UInt8 = 0x00
  static let escapedZero: UInt8 = 0xFF
  static let textEnd: UInt8 = 0x01
  static let fieldPathEnd: UInt8 = 0x00

  static func tag(of kind: Value.Kind) -> UInt8 {
    switch kind {
    case .null: 0x10
    case .boolean: 0x20
    case .number: 0x30
    case .timestamp: 0x40
    case .pendingServerTimestamp: 0x48
    case .string: 0x50
    case .bytes: 0x60
    case .reference: 0x70
    case .geoPoint: 0x80
    case .array: 0x90
    case .vector: 0xA0
    case .map: 0xB0
    }
  }
}
