// Reads and changes the value at a field path inside a document's fields.
//
// Invariant: setting creates the maps on the path and replaces values that are not maps; removing never creates any.

extension MapValue {
  /// The value at a path; nil if it or a map on the path is missing.
  public func value(at path: FieldPath) -> Value? {
    var map = self
    for name in path.segments.dropLast() {
      guard case .map(let inner)? = map[name] else { return nil }
      map = inner
    }
    return path.segments.last.flatMap { map[$0] }
  }

  /// Sets the value at a path.
  public mutating func set(_ value: Value, at path: FieldPath) { set(value, path.segments[...]) }

  /// Removes the value at a path, if there is one.
  public mutating func remove(at path: FieldPath) { remove(path.segments[...]) }

  private mutating func set(_ value: Value, _ path: ArraySlice<String>) {
    guard let name = path.first else { return }
    if path.count == 1 {
      self[name] = value
      return
    }
    update(name) { slot in
      var inner = MapValue()
      if case .map(let map)? = slot { inner = map }
      slot = .null  // Keeps the map uniquely referenced while it changes.
      inner.set(value, path.dropFirst())
      slot = .map(inner)
    }
  }

  private mutating func remove(_ path: ArraySlice<String>) {
    guard let name = path.first else { return }
    if path.count == 1 {
      self[name] = nil
      return
    }
    guard case .map? = self[name] else { return }
    update(name) { slot in
      guard case .map(var inner)? = slot else { return }
      slot = .null
      inner.remove(path.dropFirst())
      slot = .map(inner)
    }
  }
}
