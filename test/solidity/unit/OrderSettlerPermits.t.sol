// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {Ownable} from "@openzeppelin/contracts/access/Ownable.sol";
import {IERC20Errors} from "@openzeppelin/contracts/interfaces/draft-IERC6093.sol";
import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {IERC20Permit} from "@openzeppelin/contracts/token/ERC20/extensions/IERC20Permit.sol";
import {IEntrypoint} from "../../../contracts/interfaces/IEntrypoint.sol";
import {IOrderSettler} from "../../../contracts/interfaces/IOrderSettler.sol";
import {BurningToken} from "../support/HostileTokens.sol";
import {IDaiPermitToken} from "../support/Interfaces.sol";
import {SettlerOrders} from "../support/SettlerOrders.sol";

/// @notice Signed orders of owners who give Permit2 its allowance by a signature, too.
contract OrderSettlerPermitsTest is SettlerOrders {
    bytes32 private constant PERMIT_TYPEHASH = keccak256(
        "Permit(address owner,address spender,uint256 value,uint256 nonce,uint256 deadline)"
    );
    bytes32 private constant DAI_PERMIT_TYPEHASH = keccak256(
        "Permit(address holder,address spender,uint256 nonce,uint256 expiry,bool allowed)"
    );
    /// @dev Of permit(address,address,uint256,uint256,bool,uint8,bytes32,bytes32), and with a signature in bytes.
    bytes4 private constant DAI_PERMIT_SELECTOR = 0x8fcbaf0c;
    bytes4 private constant BYTES_PERMIT_SELECTOR = 0x9fd5a6cf;

    /// @dev The most gas that a permit gets.
    uint256 private constant PERMIT_GAS = 200_000;

    IDaiPermitToken private _dai;

    function setUp() public override {
        super.setUp();
        vm.startPrank(signer);
        base.approve(address(permit2), 0);
        quote.approve(address(permit2), 0);
        vm.stopPrank();
        _dai = IDaiPermitToken(deploy("DaiPermitToken.sol:DaiPermitToken", ""));
        _dai.mint(signer, 5e18);
    }

    function test_SellsByAPermit() external {
        IOrderSettler.Order memory order = _signed(false, 1e18, 2900e6);
        uint256 expected = _quote(false, 0.99e18);
        _expectFilled(order, 1e18, expected, 0.01e18, true);
        (uint256 amountIn, uint256 amountOut) = _fillBy(
            address(base),
            _permit(base, 1e18),
            abi.encodeCall(IOrderSettler.fillOnCurve, (0.01e18, order))
        );
        assertEq(amountIn, 1e18, "in");
        assertEq(amountOut, expected, "out");
        _expectChanges(false, 1e18, 1e18, expected, expected);
        assertEq(base.allowance(signer, address(permit2)), 0, "used up");
    }

    function test_BuysByAPermit() external {
        IOrderSettler.Order memory order = _signed(true, 3050e6, 1e18);
        uint256 cost = _quoteExactOutput(true, 1e18);
        (uint256 amountIn, uint256 amountOut) = _fillBy(
            address(quote),
            _permit(quote, type(uint256).max),
            abi.encodeCall(IOrderSettler.fillOnCurveExactOut, (1e6, order))
        );
        assertEq(amountIn, cost + 1e6, "in");
        assertEq(amountOut, 1e18, "out");
        _expectChanges(true, cost + 1e6, cost + 1e6, 1e18, 1e18);
    }

    function test_RoutesByAPermit() external {
        IOrderSettler.Order memory order = _signed(false, 1e18, 2990e6);
        IOrderSettler.Route memory route = _route(1e18, 0.02e18);
        route = _via(route, address(base), 0.98e18, 0.98e18, address(quote), 2995e6);
        bytes memory fill = abi.encodeCall(IOrderSettler.fillRoute, (order, route));
        (uint256 amountIn, uint256 amountOut) = _fillBy(address(base), _permit(base, 1e18), fill);
        assertEq(amountIn, 1e18, "in");
        assertEq(amountOut, 2995e6, "out");
        _expectChanges(false, 1e18, 0.02e18, 2995e6, 0);
        _expectNothingLeft();
    }

    function test_ByThePermitOfDai() external {
        bytes memory fill = _daiFill(1e18);
        bytes32 structHash = keccak256(abi.encode(DAI_PERMIT_TYPEHASH, signer, address(permit2), 0, START, true));
        (uint8 v, bytes32 r, bytes32 s) = _signedBy(_dai.DOMAIN_SEPARATOR(), structHash);
        bytes memory permit = abi.encodeWithSelector(
            DAI_PERMIT_SELECTOR,
            signer,
            address(permit2),
            0,
            START,
            true,
            v,
            r,
            s
        );
        (uint256 amountIn, ) = _fillBy(address(_dai), permit, fill);
        assertEq(amountIn, 1e18, "in");
        assertEq(_dai.balanceOf(signer), 4e18, "paid");
        // Once more by what remains of it.
        fill = _daiFill(2e18);
        _fillBy(address(_dai), permit, fill);
        assertEq(_dai.balanceOf(signer), 2e18, "paid again");
    }

    function test_ByAPermitWithBytes() external {
        bytes memory fill = _daiFill(1e18);
        bytes32 structHash = keccak256(abi.encode(PERMIT_TYPEHASH, signer, address(permit2), 1e18, 0, START));
        (uint8 v, bytes32 r, bytes32 s) = _signedBy(_dai.DOMAIN_SEPARATOR(), structHash);
        bytes memory signature = abi.encodePacked(r, s, v);
        bytes memory permit = abi.encodeWithSelector(
            BYTES_PERMIT_SELECTOR,
            signer,
            address(permit2),
            1e18,
            START,
            signature
        );
        _fillBy(address(_dai), permit, fill);
        assertEq(_dai.balanceOf(signer), 4e18, "paid");
    }

    /// @dev A token, or an account that it asks for its signature, may burn all the gas that it gets. The fill needs none of that part.
    function test_APermitThatBurnsItsGasTakesNoMore() external {
        _approvePermit2(signer, address(base));
        bytes memory permit = _permit(base, 1e18);
        // Both from one state: another nonce or another place on the curve takes another amount of gas.
        uint256 state = vm.snapshotState();
        uint256 alone = _gasOfFill(address(exchange), permit, 3_000_000);
        assertTrue(vm.revertToState(state), "reverted to");
        uint256 burning = _gasOfFill(address(new BurningToken()), permit, 3_000_000);
        assertLe(alone + PERMIT_GAS - 30_000, burning, "burnt");
        assertLe(burning, alone + PERMIT_GAS, "and no more");
        // With what the fill takes besides, all is well: without a cap 63 of 64 parts would be gone.
        _gasOfFill(address(new BurningToken()), permit, burning + 20_000);
    }

    /// @dev Whatever gas a transaction has: where the order is filled, by an allowance that is there anyway, its permit is done, too.
    function test_NoGasLimitStarvesAPermit() external {
        _approvePermit2(signer, address(base));
        bytes memory permit = _permit(base, 1e18);
        bytes memory fill = abi.encodeCall(IOrderSettler.fillOnCurve, (0, _signed(false, 1e18, 1)));
        bytes memory data = abi.encodeCall(IOrderSettler.fillWithPermit, (address(base), permit, fill));
        uint256 filled;
        for (uint256 gas = 20_000; gas <= 600_000; gas += 2500) {
            uint256 state = vm.snapshotState();
            vm.prank(EXECUTOR);
            (bool done, ) = address(settler).call{gas: gas}(data);
            if (done) {
                assertEq(IERC20Permit(address(base)).nonces(signer), 1, "starved");
                ++filled;
            }
            assertTrue(vm.revertToState(state), "reverted to");
        }
        assertLe(1, filled, "some");
        assertLe(filled, 230, "not all");
    }

    /// @dev With nothing touched before: 77k by EIP-2612, 80k by DAI's, and 82k by one in bytes of an account whose code checks it.
    function test_HonestPermitsTakeLessThanHalfOfTheirGas() external {
        bytes32 structHash = keccak256(abi.encode(DAI_PERMIT_TYPEHASH, signer, address(permit2), 0, START, true));
        (uint8 v, bytes32 r, bytes32 s) = _signedBy(_dai.DOMAIN_SEPARATOR(), structHash);
        bytes memory dai = abi.encodeWithSelector(
            DAI_PERMIT_SELECTOR,
            signer,
            address(permit2),
            0,
            START,
            true,
            v,
            r,
            s
        );
        address account = deploy("SmartAccount.sol:SmartAccount", abi.encode(signer));
        structHash = keccak256(abi.encode(PERMIT_TYPEHASH, account, address(permit2), 1e18, 0, START));
        (v, r, s) = _signedBy(_dai.DOMAIN_SEPARATOR(), structHash);
        bytes memory signature = abi.encodePacked(bytes1(0x01), r, s, v);
        bytes memory byCode = abi.encodeWithSelector(
            BYTES_PERMIT_SELECTOR,
            account,
            address(permit2),
            1e18,
            START,
            signature
        );
        _expectCheap(address(base), _permit(base, 1e18));
        _expectCheap(address(_dai), dai);
        _expectCheap(address(_dai), byCode);
        assertEq(_dai.allowance(account, address(permit2)), 1e18, "by its code");
    }

    /// @dev Whoever saw the permit on its way may submit it first, which must not stop the order.
    function test_AFrontRunPermitDoesNoHarm() external {
        bytes memory permit = _permit(base, 1e18);
        vm.prank(STRANGER);
        (bool done, ) = address(base).call(permit);
        assertTrue(done, "submitted by somebody else");
        bytes memory fill = abi.encodeCall(IOrderSettler.fillOnCurve, (0, _signed(false, 1e18, 1)));
        (uint256 amountIn, ) = _fillBy(address(base), permit, fill);
        assertEq(amountIn, 1e18, "in");
    }

    function test_APermitThatFailsDoesNoHarmWhereTheAllowanceIsThere() external {
        _approvePermit2(signer, address(base));
        bytes memory fill = abi.encodeCall(IOrderSettler.fillOnCurve, (0, _signed(false, 1e18, 1)));
        bytes memory permit = _permit(base, 1e18);
        permit[0xc3] = bytes1(uint8(permit[0xc3]) ^ 1);
        (uint256 amountIn, ) = _fillBy(address(base), permit, fill);
        assertEq(amountIn, 1e18, "in");
        // Nor does a token that has no permits, or that is none.
        fill = abi.encodeCall(IOrderSettler.fillOnCurve, (0, _signed(false, 1e18, 1)));
        (amountIn, ) = _fillBy(address(exchange), permit, fill);
        assertEq(amountIn, 1e18, "in");
        fill = abi.encodeCall(IOrderSettler.fillOnCurve, (0, _signed(false, 1e18, 1)));
        (amountIn, ) = _fillBy(STRANGER, permit, fill);
        assertEq(amountIn, 1e18, "in");
    }

    function test_RevertWhen_ThePermitIsForLess() external {
        bytes memory fill = abi.encodeCall(IOrderSettler.fillOnCurve, (0, _signed(false, 1e18, 1)));
        bytes memory permit = _permit(base, 1e18 - 1);
        vm.expectRevert(
            abi.encodeWithSelector(
                IERC20Errors.ERC20InsufficientAllowance.selector,
                address(permit2),
                uint256(1e18 - 1),
                uint256(1e18)
            )
        );
        vm.prank(EXECUTOR);
        settler.fillWithPermit(address(base), permit, fill);
        assertEq(base.allowance(signer, address(permit2)), 0, "nothing of it stays");
    }

    function test_RevertWhen_TheFillDoes() external {
        uint256 quoted = _quote(false, 1e18);
        bytes memory fill = abi.encodeCall(IOrderSettler.fillOnCurve, (0, _signed(false, 1e18, quoted + 1)));
        bytes memory permit = _permit(base, 1e18);
        vm.expectRevert(abi.encodeWithSelector(IEntrypoint.InsufficientOutput.selector, quoted, quoted + 1));
        vm.prank(EXECUTOR);
        settler.fillWithPermit(address(base), permit, fill);
        vm.expectRevert(bytes(""));
        vm.prank(EXECUTOR);
        settler.fillWithPermit(address(base), permit, hex"");
    }

    function test_RevertWhen_TheCallerIsNoExecutor() external {
        bytes memory permit = _permit(base, 1e18);
        bytes memory fill = abi.encodeCall(IOrderSettler.witnessTypeString, ());
        vm.expectRevert(abi.encodeWithSelector(IOrderSettler.NotExecutor.selector, STRANGER));
        vm.prank(STRANGER);
        settler.fillWithPermit(address(base), permit, fill);
    }

    /// @dev An executor may do nothing by it that it may not do without.
    function test_RevertWhen_AnExecutorActsAsTheOwner() external {
        bytes memory permit = _permit(base, 1e18);
        bytes[2] memory acts = [
            abi.encodeCall(IOrderSettler.setExecutor, (STRANGER, true)),
            abi.encodeCall(IOrderSettler.setTarget, (STRANGER, true))
        ];
        for (uint256 i = 0; i < acts.length; ++i) {
            vm.expectRevert(abi.encodeWithSelector(Ownable.OwnableUnauthorizedAccount.selector, EXECUTOR));
            vm.prank(EXECUTOR);
            settler.fillWithPermit(address(base), permit, acts[i]);
        }
        bytes memory delivered = abi.encodeCall(IOrderSettler.deliver, (_delivery(_signed(false, 1e18, 0), 1e18)));
        vm.expectRevert(abi.encodeWithSelector(IOrderSettler.NotEntrypoint.selector, EXECUTOR));
        vm.prank(EXECUTOR);
        settler.fillWithPermit(address(base), permit, delivered);
    }

    function test_RevertWhen_ItIsNoPermitForPermit2() external {
        bytes memory permit = _permit(base, 1e18);
        _expectForbiddenPermit(hex"");
        _expectForbiddenPermit(abi.encodeCall(IERC20.approve, (address(permit2), 1e18)));
        _expectForbiddenPermit(abi.encodeCall(IERC20.transferFrom, (signer, address(permit2), 1e18)));
        _expectForbiddenPermit(abi.encodeCall(IERC20.transfer, (address(permit2), 1e18)));
        // Another spender, by any of the selectors, and one with something above its address.
        bytes memory other = bytes.concat(permit);
        other[0x43] = bytes1(uint8(other[0x43]) ^ 1);
        _expectForbiddenPermit(other);
        bytes4[3] memory selectors = [IERC20Permit.permit.selector, DAI_PERMIT_SELECTOR, BYTES_PERMIT_SELECTOR];
        for (uint256 i = 0; i < selectors.length; ++i) {
            _expectForbiddenPermit(abi.encodeWithSelector(selectors[i], signer, STRANGER, 1e18, START));
            _expectForbiddenPermit(abi.encodeWithSelector(selectors[i], address(permit2), signer, 1e18, START));
        }
        other = bytes.concat(permit);
        other[0x24] = 0x01;
        _expectForbiddenPermit(other);
        // Cut off within the spender, whatever follows it in the call.
        assembly ("memory-safe") {
            mstore(permit, 0x43)
        }
        _expectForbiddenPermit(permit);
    }

    /// @dev With nothing behind the spender it fails at the token, as any other that fails.
    function test_ThePermitMayBeShort() external {
        _approvePermit2(signer, address(base));
        bytes memory fill = abi.encodeCall(IOrderSettler.fillOnCurve, (0, _signed(false, 1e18, 1)));
        bytes memory permit = _permit(base, 1e18);
        assembly ("memory-safe") {
            mstore(permit, 0x44)
        }
        (uint256 amountIn, ) = _fillBy(address(base), permit, fill);
        assertEq(amountIn, 1e18, "in");
    }

    function _expectForbiddenPermit(bytes memory permit) private {
        bytes memory fill = abi.encodeCall(IOrderSettler.fillOnCurve, (0, _signed(false, 1e18, 1)));
        vm.expectRevert(abi.encodeWithSelector(IOrderSettler.ForbiddenPermit.selector, address(base)));
        vm.prank(EXECUTOR);
        settler.fillWithPermit(address(base), permit, fill);
    }

    function _fillBy(address token, bytes memory permit, bytes memory fill) private returns (uint256, uint256) {
        vm.prank(EXECUTOR);
        return settler.fillWithPermit(token, permit, fill);
    }

    function _gasOfFill(address token, bytes memory permit, uint256 gas) private returns (uint256 taken) {
        bytes memory fill = abi.encodeCall(IOrderSettler.fillOnCurve, (0, _signed(false, 1e18, 1)));
        vm.prank(EXECUTOR);
        taken = gasleft();
        settler.fillWithPermit{gas: gas}(token, permit, fill);
        taken -= gasleft();
    }

    function _expectCheap(address token, bytes memory permit) private {
        vm.cool(token);
        uint256 taken = gasleft();
        (bool done, ) = token.call{gas: PERMIT_GAS}(permit);
        taken -= gasleft();
        assertTrue(done, "taken");
        assertLe(taken, PERMIT_GAS / 2, "less than half");
    }

    function _daiFill(uint256 amount) private returns (bytes memory) {
        IOrderSettler.Order memory order = _sign(_order(address(_dai), address(base), amount, 1));
        IOrderSettler.Route memory route = _via(_route(amount, 0), address(_dai), amount, amount, address(base), 1e15);
        return abi.encodeCall(IOrderSettler.fillRoute, (order, route));
    }

    function _permit(IERC20 token, uint256 value) private view returns (bytes memory) {
        IERC20Permit permitted = IERC20Permit(address(token));
        bytes32 structHash = keccak256(
            abi.encode(PERMIT_TYPEHASH, signer, address(permit2), value, permitted.nonces(signer), START)
        );
        (uint8 v, bytes32 r, bytes32 s) = _signedBy(permitted.DOMAIN_SEPARATOR(), structHash);
        return abi.encodeCall(IERC20Permit.permit, (signer, address(permit2), value, START, v, r, s));
    }

    function _signedBy(bytes32 separator, bytes32 structHash) private pure returns (uint8, bytes32, bytes32) {
        return vm.sign(SIGNER_KEY, keccak256(abi.encodePacked(hex"1901", separator, structHash)));
    }
}
