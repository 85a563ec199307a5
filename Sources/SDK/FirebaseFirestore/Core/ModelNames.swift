// Names of the shared model inside this module, where the public API has classes of the same name.

import FirestoreModel

typealias ModelQuery = FirestoreModel.Query
typealias ModelFilter = FirestoreModel.Filter
typealias ModelFieldPath = FirestoreModel.FieldPath
typealias ModelTimestamp = FirestoreModel.Timestamp
typealias ModelGeoPoint = FirestoreModel.GeoPoint

/// Numbers a target on the watch stream: even for queries, odd for limbo resolutions.
typealias TargetID = Int32

/// Numbers a batch in the mutation queue, ascending from 1.
typealias BatchID = Int
