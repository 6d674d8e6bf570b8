package cu

import "bytes"

// Device describes a GPU.
type Device struct {
	Ordinal      int
	Name         string
	MemoryBytes  uint64
	Major, Minor int // compute capability
}

// The attributes of the compute capability (CUdevice_attribute).
const (
	attrCapabilityMajor = 75
	attrCapabilityMinor = 76
)

// Devices returns the GPUs that are visible to this process.
func (d *Driver) Devices() ([]Device, error) {
	var count int32
	if err := d.check("cuDeviceGetCount", d.cuDeviceGetCount(&count)); err != nil {
		return nil, err
	}
	devices := make([]Device, count)
	for i := range devices {
		if err := d.describe(&devices[i], i); err != nil {
			return nil, err
		}
	}
	return devices, nil
}

func (d *Driver) describe(out *Device, ordinal int) error {
	var handle, major, minor int32
	if err := d.check("cuDeviceGet", d.cuDeviceGet(&handle, int32(ordinal))); err != nil {
		return err
	}
	name := make([]byte, 256)
	if err := d.check("cuDeviceGetName", d.cuDeviceGetName(&name[0], int32(len(name)), handle)); err != nil {
		return err
	}
	if err := d.check("cuDeviceTotalMem", d.cuDeviceTotalMem(&out.MemoryBytes, handle)); err != nil {
		return err
	}
	if err := d.check("cuDeviceGetAttribute", d.cuDeviceGetAttr(&major, attrCapabilityMajor, handle)); err != nil {
		return err
	}
	if err := d.check("cuDeviceGetAttribute", d.cuDeviceGetAttr(&minor, attrCapabilityMinor, handle)); err != nil {
		return err
	}
	if end := bytes.IndexByte(name, 0); end >= 0 {
		name = name[:end]
	}
	out.Ordinal, out.Name, out.Major, out.Minor = ordinal, string(name), int(major), int(minor)
	return nil
}
