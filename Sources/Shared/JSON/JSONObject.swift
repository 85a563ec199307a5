// The members of a JSON object in the order they were written. A name that appears twice keeps its
// first place and its last value, as in JavaScript, so two readers never see two different objects.

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

  /// Where each name stands, kept once there are too many members to look through one by one.
  private var places: [KeyBytes: Int]?

  /// Up to this many members a lookup compares one name after the other.
  private static let scanned = 12

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
    get { place(of: key).map { members[$0].value } }
    set {
      let place = place(of: key)
      guard let newValue else {
        if let place {
          members.remove(at: place)
          places = nil
          indexIfLarge()
        }
        return
      }
      if let place {
        members[place].value = newValue
      } else {
        members.append(Member(key, newValue))
        if places != nil {
          places?[KeyBytes(key)] = members.count - 1
        } else {
          indexIfLarge()
        }
      }
    }
  }

  private func place(of key: String) -> Int? {
    if let places { return places[KeyBytes(key)] }
    return members.firstIndex { $0.key.hasSameBytes(as: key) }
  }

  private mutating func indexIfLarge() {
    guard members.count > Self.scanned else { return }
    var index = [KeyBytes: Int](minimumCapacity: members.count * 2)
    for (place, member) in members.enumerated() { index[KeyBytes(member.key)] = place }
    places = index
  }

  /// Whether both have the same names with equal values, in whatever order.
  public static func == (lhs: JSONObject, rhs: JSONObject) -> Bool {
    guard lhs.count == rhs.count else { return false }
    return lhs.members.allSatisfy { rhs[$0.key] == $0.value }
  }
}

/// A string that hashes and compares by its bytes.
struct KeyBytes: Hashable {
  let text: String

  init(_ text: String) { self.text = text }

  static func == (lhs: KeyBytes, rhs: KeyBytes) -> Bool { lhs.text.hasSameBytes(as: rhs.text) }

  func hash(into hasher: inout Hasher) {
    var text = text
    text.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
  }
}
