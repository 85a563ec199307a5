// Validates and orders resource ids: collection ids and document ids.
//
// Invariant: an id `__id<n>__`, in which `<n>` is a 64-bit integer in canonical decimal form, is numeric. Numeric ids
// sort before all other ids.

/// The rules of a collection id or document id.
public enum ResourceID {
  /// The number in a numeric id such as `__id42__`; nil for any other id. The number must be in canonical decimal form.
  public static func number(in id: String) -> Int64? {
    let bytes = id.utf8
    guard bytes.count >= 7, bytes.count <= 26, bytes.starts(with: "__id".utf8), isReserved(id) else {
      return nil
    }
    let digits = String(Substring(bytes.dropFirst(4).dropLast(2)))
    guard let number = Int64(digits), String(number).hasSameUTF8(as: digits) else { return nil }
    return number
  }

  /// Orders two ids: numbers first, numerically; then text by UTF-8.
  public static func compare(_ a: String, _ b: String) -> ComparisonOrder {
    // Only ids that begin with an underscore can be numbers; the fast path handles all others.
    if a.utf8.first == 0x5F || b.utf8.first == 0x5F {
      switch (number(in: a), number(in: b)) {
      case (let a?, let b?): return ComparisonOrder.compare(a, b)
      case (_?, nil): return .ascending
      case (nil, _?): return .descending
      case (nil, nil): break
      }
    }
    return ComparisonOrder.compare(utf8: a, b)
  }

  /// Whether an id has the reserved form `__…__`.
  public static func isReserved(_ id: String) -> Bool {
    let bytes = id.utf8
    return bytes.count >= 4 && bytes.starts(with: "__".utf8) && bytes.suffix(2).elementsEqual("__".utf8)
  }

  /// Validates a document id outside of a path, as in CreateDocument.
  public static func validate(documentID id: String) throws(FirestoreError) {
    try validate(id, kind: "Document id", allowsNumber: true)
  }

  /// Validates a collection id outside of a path, as in a query's `from`.
  public static func validate(collectionID id: String) throws(FirestoreError) {
    try validate(id, kind: "Collection id", allowsNumber: false)
  }

  private static func validate(_ id: String, kind: String, allowsNumber: Bool) throws(FirestoreError) {
    if id.utf8.isEmpty { throw .invalidArgument("\(kind) \"\" is invalid because it is empty.") }
    if id.utf8.contains(0x2F) {
      throw .invalidArgument("\(kind) \"\(id.echoed)\" is invalid because it contains \"/\".")
    }
    if id == "." || id == ".." {
      throw .invalidArgument("\(kind) \"\(id)\" is invalid because it is \".\" or \"..\".")
    }
    try validateSizeAndReservation(id, allowsNumber: allowsNumber)
  }

  /// Validates the length and the reserved form of a non-empty id.
  static func validateSizeAndReservation(_ id: String, allowsNumber: Bool) throws(FirestoreError) {
    if id.utf8.count > Limits.resourceIDBytes {
      throw .invalidArgument(
        "Resource id \"\(id.echoed(64))\" is invalid because it is longer than "
          + "\(Limits.resourceIDBytes) bytes.")
    }
    if isReserved(id), !(allowsNumber && number(in: id) != nil) {
      throw .invalidArgument("Resource id \"\(id)\" is invalid because it is reserved.")
    }
  }
}
