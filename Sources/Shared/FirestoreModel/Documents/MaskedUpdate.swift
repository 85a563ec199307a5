// What an update with a mask makes of a document's fields, in one pass over the fields and the sorted mask.
//
// Invariant: the result is that of setting or removing path after path, in whatever order, but costs the fields plus
// the mask (in order, as a `Write` has it; else that times its logarithm), since both come from clients and this runs
// where others wait. Order does not matter because of two paths, one inside the other, the outer one alone decides.

extension MapValue {
  /// These fields changed as a masked update says: paths that the update has are set, others are removed.
  public func merging(_ update: MapValue, mask: [FieldPath]) -> MapValue {
    MapValue.merge(self, update, mask.inOrder[...], depth: 0).fields
  }

  /// Merges what some sorted paths, equal above `depth`, name; nil for an update without this map.
  ///
  /// Tells, too, whether anything was set: only that may make a map where none was.
  private static func merge(
    _ existing: MapValue, _ update: MapValue?, _ paths: ArraySlice<FieldPath>, depth: Int
  ) -> (fields: MapValue, didSet: Bool) {
    var result: [Entry] = []
    result.reserveCapacity(existing.count + (update == nil ? 0 : paths.count))
    var didSet = false
    var position = 0
    var rest = paths
    while let first = rest.first {
      let name = first.segments[depth]
      let group = rest.prefix { $0.segments[depth].hasSameUTF8(as: name) }
      rest = rest.dropFirst(group.count)
      // What stands before the name stays as it is.
      let (next, isPresent) = existing.find(name, from: position)
      result += existing.entries[position..<next]
      position = isPresent ? next + 1 : next
      let old = isPresent ? existing.entries[next].value : nil
      let new = update?[name]
      var value: Value?
      if first.count == depth + 1 {
        value = new
        didSet = didSet || new != nil
      } else {
        var inner = MapValue()
        var isMap = false
        if case .map(let map)? = old { (inner, isMap) = (map, true) }
        var source: MapValue?
        if case .map(let map)? = new { source = map }
        value = old
        if isMap || source != nil {
          let merged = merge(inner, source, group, depth: depth + 1)
          if isMap || merged.didSet { value = .map(merged.fields) }
          didSet = didSet || merged.didSet
        }
      }
      if let value { result.append(Entry(key: name, value: value)) }
    }
    result += existing.entries[position...]
    return (MapValue(sorted: result), didSet)
  }
}
