// A JSON object: its members in the order of the text. A repeated name keeps its first position and its last value, as
// in JavaScript.

/// The members of a JSON object, in order, each name once.
public struct JSONObject: Sendable, Equatable, ExpressibleByDictionaryLiteral {
  /// One name with its value.
  public struct Member: Sendable, Equatable {
    /// The name.
    public var key: String
    /// The value.
    public var value: JSONValue

    /// Creates a member.
    public init(_ key: String, _ value: JSONValue) {
      self.key = key
      self.value = value
    }
  }

  /// The members in order.
  public private(set) var members: [Member]

  /// The index of each name, maintained for objects with more than ``maximumScanned`` members.
  private var indexByName: [BytewiseString: Int]?

  /// The maximum members of objects in which a lookup scans the names.
  private static let maximumScanned = 12

  /// Creates an object without members.
  public init() { members = [] }

  /// Creates an object from members in order.
  public init(dictionaryLiteral elements: (String, JSONValue)...) {
    self.init()
    for (key, value) in elements { self[key] = value }
  }

  /// The number of members.
  public var count: Int { members.count }

  /// Whether there are no members.
  public var isEmpty: Bool { members.isEmpty }

  /// The value of a name. Setting `nil` removes the member; setting a value adds or replaces it.
  public subscript(key: String) -> JSONValue? {
    get { index(of: key).map { members[$0].value } }
    set {
      let index = self.index(of: key)
      guard let newValue else {
        if let index {
          members.remove(at: index)
          indexByName = nil
          indexIfLarge()
        }
        return
      }
      if let index {
        members[index].value = newValue
      } else {
        members.append(Member(key, newValue))
        if indexByName != nil {
          indexByName?[BytewiseString(key)] = members.count - 1
        } else {
          indexIfLarge()
        }
      }
    }
  }

  private func index(of key: String) -> Int? {
    if let indexByName { return indexByName[BytewiseString(key)] }
    return members.firstIndex { $0.key.hasSameBytes(as: key) }
  }

  private mutating func indexIfLarge() {
    guard members.count > Self.maximumScanned else { return }
    var indexes = [BytewiseString: Int](minimumCapacity: members.count * 2)
    for (index, member) in members.enumerated() { indexes[BytewiseString(member.key)] = index }
    indexByName = indexes
  }

  /// Whether both objects have the same names with equal values, in any order.
  public static func == (lhs: JSONObject, rhs: JSONObject) -> Bool {
    guard lhs.count == rhs.count else { return false }
    return lhs.members.allSatisfy { rhs[$0.key] == $0.value }
  }
}

/// A string that hashes and compares by its UTF-8 bytes.
struct BytewiseString: Hashable {
  let text: String

  init(_ text: String) { self.text = text }

  static func == (lhs: BytewiseString, rhs: BytewiseString) -> Bool { lhs.text.hasSameBytes(as: rhs.text) }

  func hash(into hasher: inout Hasher) {
    var text = text
    text.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
  }
}
