package cuda

import "haul/internal/cu"

// What a reader could break: the copy engine keeps the descriptions of matrices that it has read
// (cu.Matrix) in a cache of its own, which writing to the card's memory does not clear. So a place
// on the card that has held one description never holds another, as long as the device is open.

const descriptionRoom = 512 * cu.TileBytes // reserved at a time

// descriptions are the places of all descriptions that a device has been given.
type descriptions struct {
	at    map[string]uint64
	next  uint64
	left  int
	rooms []memory
}

// place is where a description lies, and whether it has yet to be written there.
func (p *descriptions) place(data []byte, alloc func(bytes int) (memory, error)) (at uint64, fresh bool, err error) {
	if at, ok := p.at[string(data)]; ok {
		return at, false, nil
	}
	if p.left == 0 {
		m, err := alloc(descriptionRoom)
		if err != nil {
			return 0, false, err
		}
		p.rooms = append(p.rooms, m)
		p.next, p.left = m.at, descriptionRoom/cu.TileBytes
	}
	at = p.next
	p.next, p.left = p.next+cu.TileBytes, p.left-1
	if p.at == nil {
		p.at = map[string]uint64{}
	}
	p.at[string(data)] = at
	return at, true, nil
}

// forget gives a description up that could not be written. Its place stays empty.
func (p *descriptions) forget(data []byte) { delete(p.at, string(data)) }
